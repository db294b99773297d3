"""A conversation that outlives its Python process: each turn ends with kill -9.

Turn 1 computes, turn 2 uses and then spoils the variables of turn 1, turn 3 goes back to a snapshot.
The messages are in a file, as they would be in your database; the variables are with pykeep.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.messages import messages_from_dict, messages_to_dict
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from support import PYKEEP, chat_model, python, quoting, show

TURNS = {
    "1": (
        "Draw 1,000 normal numbers with seed 1 and tell me their mean.",
        python(
            "import numpy as np\ndata = np.random.default_rng(1).normal(size=1000)\nprint(data.mean().round(4))"
        ),
        quoting("The mean is {}."),
    ),
    "2": (
        "And the largest? Then double all of them, in place.",
        python("print(data.max().round(4))\ndata *= 2"),
        quoting("The largest was {}; doubled."),
    ),
    "3": (
        "No, take that back. What is the largest now?",
        python("print(data.max().round(4))"),
        quoting("It is {} again."),
    ),
}


async def turn(number, conversation, history: Path):
    """One turn of the conversation, in a process of its own."""
    question, *script = TURNS[number]
    # The name makes this process go on where the last one stopped.
    server = {"transport": "stdio", "command": PYKEEP, "args": ["--session", conversation]}
    client = MultiServerMCPClient({"python": server})
    messages = messages_from_dict(json.loads(history.read_text())) if history.exists() else []
    snapshot = {"snapshot": f"{conversation}-turn-1"}
    async with client.session("python") as session:
        if number == "3":
            await session.call_tool("restore_snapshot", {**snapshot, "session": conversation})
            await session.call_tool("delete_snapshot", snapshot)
        agent = create_agent(chat_model(*script), await load_mcp_tools(session))
        answer = await agent.ainvoke({"messages": [*messages, {"role": "user", "content": question}]})
        show(answer["messages"][len(messages) :])
        history.write_text(json.dumps(messages_to_dict(answer["messages"])))
        if number == "1":
            await session.call_tool("snapshot", {"name": snapshot["snapshot"]})
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)


def main():
    conversation = f"conversation-{os.getpid()}"
    with tempfile.TemporaryDirectory() as directory:
        for number in TURNS:
            turn_of = [number, conversation, Path(directory, "history.json")]
            process = subprocess.run([sys.executable, __file__, *turn_of])
            print(f"== turn {number}: its process ended by signal {-process.returncode}", flush=True)


if len(sys.argv) > 1:
    asyncio.run(turn(*sys.argv[1:3], Path(sys.argv[3])))
else:
    main()
