"""A ReAct graph, written out: model -> tools -> model. Each thread of it has a Python of its own."""

import asyncio
import itertools
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

BUILT = Path(__file__).resolve().parents[2] / "build/release/pykeep"
PYKEEP = os.environ.get("PYKEEP_BINARY") or shutil.which("pykeep") or str(BUILT)


def react(model, tools):
    model = model.bind_tools(tools)

    async def think(state: MessagesState):
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", think)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=InMemorySaver())


class SessionOfThread:
    """Gives each call the session of the graph's thread. In a program with a database, `handles` is a table."""

    def __init__(self, mcp):
        self.mcp = mcp
        self.handles = {}

    async def __call__(self, request, handler):
        thread = request.runtime.config["configurable"]["thread_id"]
        if thread not in self.handles:
            created = await self.mcp.call_tool("create_session", {})
            self.handles[thread] = re.search(r'session="(\w+)"', created.content[0].text)[1]
        return await handler(request.override(args={**request.args, "session": self.handles[thread]}))


# ---- a model without a key ----


class ScriptedModel(GenericFakeChatModel):
    """LangChain's test double, made to call tools. Each line of its script makes a message of the last one."""

    messages: Iterator[Any]

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        said = next(self.messages)(messages[-1])
        return ChatResult(generations=[ChatGeneration(message=said)])


def python(code, count=itertools.count(1)):  # noqa: B008 - one count for all calls
    call = {"name": "run_python", "args": {"code": code}, "id": f"call-{next(count)}"}
    return lambda _: AIMessage(content="", tool_calls=[call])


def quoting(words):
    return lambda result: AIMessage(content=words.format(result.text.strip().splitlines()[-1]))


CONVERSATION = (
    ("anna", "Remember the primes below 30.", ("primes = [n for n in range(2, 30) if all(n % d for d in range(2, n))]\nprint(primes)", "Kept: {}.")),
    ("bert", "What are the primes?", ("print(primes)", "I do not have them: {}")),
    ("anna", "Add them up.", ("print(sum(primes))", "Their sum is {}.")),
)  # fmt: skip


async def main():
    lines = (line for *_, (code, words) in CONVERSATION for line in (python(code), quoting(words)))
    model = init_chat_model(os.environ["MODEL"]) if "MODEL" in os.environ else ScriptedModel(messages=lines)
    client = MultiServerMCPClient({"python": {"transport": "stdio", "command": PYKEEP, "args": []}})
    async with client.session("python") as mcp:
        tools = await load_mcp_tools(mcp, tool_interceptors=[SessionOfThread(mcp)])
        graph = react(model, [tool for tool in tools if tool.name == "run_python"])
        for thread, question, _ in CONVERSATION:
            print(f"{thread}: {question}")
            asked = {"messages": [{"role": "user", "content": question}]}
            answer = await graph.ainvoke(asked, {"configurable": {"thread_id": thread}})
            print(f"  {answer['messages'][-1].text}")


asyncio.run(main())
