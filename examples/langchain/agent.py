"""An agent with a Python of its own: one MCP session for the whole conversation."""

import asyncio

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from support import PYKEEP, chat_model, python, quoting, show

QUESTIONS = (
    "Walk 1,000 random steps of +1 or -1, with seed 7. Where does the walk end?",
    "How far from the start did it get on the way?",
    "Draw it.",
)
MODEL = chat_model(
    python(
        "import numpy as np\n"
        "walk = np.random.default_rng(7).choice([-1, 1], 1000).cumsum()\n"
        "print(walk[-1])"
    ),
    quoting("The walk ends at {}."),
    python("print(abs(walk).max())"),
    quoting("At most {} steps away."),
    python("import matplotlib.pyplot as plt\nplt.plot(walk)\nplt.title('A random walk')"),
    quoting("Here it is."),
)


async def main():
    client = MultiServerMCPClient({"python": {"transport": "stdio", "command": PYKEEP, "args": []}})
    async with client.session("python") as session:
        agent = create_agent(MODEL, await load_mcp_tools(session))
        messages = []
        for question in QUESTIONS:
            asked = [*messages, {"role": "user", "content": question}]
            answer = await agent.ainvoke({"messages": asked})
            show(answer["messages"][len(messages) :])
            messages = answer["messages"]


asyncio.run(main())
