"""Charts that the model itself looks at.

pykeep returns a chart as an image, and the adapter makes it an image block of the tool's message. Models of
Anthropic and Google, and OpenAI's Responses API, take it there. An API that takes images only from the user
(Chat Completions, many local models) gets it from the middleware below, as a message of the user's.
"""

import asyncio
import base64
import struct

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from support import PYKEEP, chat_model, python, show


def images(message):
    return [block for block in message.content_blocks if block["type"] == "image"]


def from_the_user(messages):
    """The same messages, with the images of tools' messages moved to one of the user's behind them."""
    moved, waiting = [], []
    for message in messages:
        if waiting and not isinstance(message, ToolMessage):  # all tools of a turn answer first
            moved.append(HumanMessage(content_blocks=[{"type": "text", "text": "The charts:"}, *waiting]))
            waiting = []
        if isinstance(message, ToolMessage) and images(message):
            waiting += images(message)
            message = message.model_copy(update={"content": message.text})
        moved.append(message)
    if waiting:
        moved.append(HumanMessage(content_blocks=[{"type": "text", "text": "The charts:"}, *waiting]))
    return moved


@wrap_model_call
async def charts_from_the_user(request, handler):
    return await handler(request.override(messages=from_the_user(request.messages)))


def looking(messages):
    """A line of the script: says what only a model that was given the image can know."""
    chart = images(messages[-1])[0]
    width, height = struct.unpack(">II", base64.b64decode(chart["base64"])[16:24])
    return AIMessage(
        content=f"From a {messages[-1].type} message I see a chart of {width} x {height} pixels."
    )


async def main():
    draw = "import matplotlib.pyplot as plt\nplt.bar(['north', 'south'], [3, 5])\nplt.title('Sales')"
    question = {
        "role": "user",
        "content": "Draw the sales of north (3) and south (5) and describe the chart.",
    }
    client = MultiServerMCPClient({"python": {"transport": "stdio", "command": PYKEEP, "args": []}})
    async with client.session("python") as session:
        tools = await load_mcp_tools(session)
        for middleware in ([], [charts_from_the_user]):
            agent = create_agent(chat_model(python(draw), looking), tools, middleware=middleware)
            answer = await agent.ainvoke({"messages": [question]})
            show(answer["messages"])


asyncio.run(main())
