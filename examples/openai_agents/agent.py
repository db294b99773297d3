"""The OpenAI Agents SDK with pykeep as its code interpreter: local, persistent, and with charts."""

import asyncio
import itertools
import os
import re
import shutil
from pathlib import Path

from agents import Agent, Runner, SQLiteSession, set_tracing_disabled
from agents.mcp import MCPServerStdio
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

BUILT = Path(__file__).resolve().parents[2] / "build/release/pykeep"
PYKEEP = os.environ.get("PYKEEP_BINARY") or shutil.which("pykeep") or str(BUILT)
IDS = itertools.count(1)


# ---- a model without a key: the SDK's own test double, which quotes what a tool returned ----


def python(code, **arguments):
    return [function_call("run_python", {"code": code, **arguments}, call_id=f"call-{next(IDS)}")]


def quoting(words):
    def say(call):
        content = call.input[-1]["output"]
        parts = content if isinstance(content, list) else [content]
        text = "\n".join(part["text"] for part in parts if part["type"] == "input_text")
        images = sum(part["type"] == "input_image" for part in parts)
        said = words.format(text=re.sub(r"^\[.*\]\n?", "", text, flags=re.MULTILINE).strip(), images=images)
        return ModelStep(output=[assistant_message(said)])

    return ModelStep(responder=say)


CONVERSATION = {
    "Throw two dice 1,000 times, with seed 3. How often is it a twelve?": (
        python(
            "import numpy as np\n"
            "sums = np.random.default_rng(3).integers(1, 7, (1000, 2)).sum(axis=1)\n"
            "print((sums == 12).sum())"
        ),
        quoting("{text} times."),
    ),
    "And which sum is the most frequent? Draw it.": (
        python(
            "import matplotlib.pyplot as plt\n"
            "plt.hist(sums, bins=range(2, 14), align='left')\n"
            "print(np.bincount(sums).argmax())"
        ),
        quoting("The {text}; I was given {images} image."),
    ),
}


async def main():
    set_tracing_disabled(True)  # nothing is reported; without this line it goes to the key's account
    script = ScriptedModel(line for lines in CONVERSATION.values() for line in lines)
    async with MCPServerStdio(
        params={"command": PYKEEP, "args": []},
        client_session_timeout_seconds=60,  # of the default, 5 s, a first plot may take more
        cache_tools_list=True,
    ) as server:
        agent = Agent(
            name="Analyst",
            instructions="Use run_python for everything that can be computed. Variables stay.",
            model=os.environ.get("MODEL") or script,
            mcp_servers=[server],
        )
        conversation = SQLiteSession("dice")  # the messages; the variables are with pykeep
        for question in CONVERSATION:
            print(f"user: {question}")
            answer = await Runner.run(agent, question, session=conversation)
            print(f"  {answer.final_output}")


asyncio.run(main())
