"""A crew whose agents share one Python: the analyst computes, the writer goes on with the same variables."""

import itertools
import json
import os
import re
import shutil
from pathlib import Path

os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")

from crewai import Agent, BaseLLM, Crew, Task  # noqa: E402
from crewai.mcp import MCPServerStdio, create_static_tool_filter  # noqa: E402

BUILT = Path(__file__).resolve().parents[2] / "build/release/pykeep"
PYKEEP = os.environ.get("PYKEEP_BINARY") or shutil.which("pykeep") or str(BUILT)
IDS = itertools.count(1)


# ---- a model without a key ----


class ScriptedLLM(BaseLLM):
    """Says one line of its script each time: code to run, or words with the last result in place of {}."""

    script: list[str]

    def call(self, messages, tools=None, **kwargs):
        line = self.script.pop(0)
        if line.startswith("> "):
            name = tools[0]["function"]["name"]  # CrewAI puts the server's command before it, and shortens it
            code = {"name": name, "arguments": json.dumps({"code": line[2:]})}
            return [{"id": f"call-{next(IDS)}", "type": "function", "function": code}]
        results = [message["content"] for message in messages if message["role"] == "tool"]
        printed = re.sub(r"^\[.*\]\n?", "", results[-1], flags=re.MULTILINE) if results else ""
        return line.format(printed.strip())

    async def acall(self, messages, tools=None, **kwargs):
        return self.call(messages, tools, **kwargs)

    def supports_function_calling(self):
        return True

    def get_input_tokens_count(self, messages, *args, **kwargs):
        return len(str(messages)) // 4  # CrewAI's own guess comes with a warning each time


def llm(*script):
    """The model that MODEL names, as "anthropic/claude-sonnet-5"; else the script."""
    return os.environ.get("MODEL") or ScriptedLLM(model="scripted", script=list(script))


# CrewAI starts a server for each call of a tool; by the name all of them, of both agents, meet in one session.
python = MCPServerStdio(
    command=PYKEEP,
    args=["--session", f"crew-{os.getpid()}"],
    tool_filter=create_static_tool_filter(allowed_tool_names=["run_python"]),
    cache_tools_list=True,
)
habits = "Python variables stay between calls. Print what you need to see."

analyst = Agent(
    role="analyst",
    goal="Compute what is asked for",
    backstory=habits,
    mcps=[python],
    llm=llm(
        "> import pandas as pd\n"
        "sales = pd.DataFrame({'region': ['north', 'south', 'north', 'south'], 'units': [3, 5, 4, 8]})\n"
        "by_region = sales.groupby('region').units.sum()\n"
        "print(by_region.to_dict())",
        "The sums are {}; they are in `by_region`.",
    ),
)
writer = Agent(
    role="writer",
    goal="Write one sentence for the management",
    backstory=habits,
    mcps=[python],
    llm=llm(
        "> print(f'{by_region.idxmax()} leads with {by_region.max() / by_region.sum():.0%} of the units')",
        "In this quarter {}.",
    ),
)
numbers = Task(
    description="Sum the units by region: north 3, south 5, north 4, south 8. Keep the sums in `by_region`.",
    expected_output="The sums, and the name of the variable",
    agent=analyst,
)
report = Task(
    description="Which region leads, and by how much? Compute it from the analyst's variable.",
    expected_output="One sentence",
    agent=writer,
)

for task in Crew(agents=[analyst, writer], tasks=[numbers, report]).kickoff().tasks_output:
    print(f"{task.agent}: {task.raw}")
