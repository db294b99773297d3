"""Without an agent: `bind_tools`, and a loop of your own that runs what the model asks for."""

import asyncio

from langchain_core.messages import HumanMessage
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from support import PYKEEP, chat_model, python, quoting, show

MODEL = chat_model(
    python("import math\nmath.factorial(n)"),
    python("n = 20\nmath.factorial(n)"),  # the traceback taught it; the import has been kept
    quoting("20! is {}."),
)


async def main():
    client = MultiServerMCPClient({"python": {"transport": "stdio", "command": PYKEEP, "args": []}})
    async with client.session("python") as session:
        tools = {tool.name: tool for tool in await load_mcp_tools(session)}
        model = MODEL.bind_tools(list(tools.values()))
        messages = [HumanMessage("What is the factorial of 20?")]
        while True:
            said = await model.ainvoke(messages)
            messages.append(said)
            if not said.tool_calls:
                break
            for call in said.tool_calls:
                messages.append(await tools[call["name"]].ainvoke(call))  # a ToolMessage, also of an error
        show(messages)


asyncio.run(main())
