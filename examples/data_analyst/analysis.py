"""One CSV file, one Python, one agent, and what happens as a list of events for a page to follow."""

import asyncio
import os
import shutil
from pathlib import Path

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from script import scripted_model

BUILT = Path(__file__).resolve().parents[2] / "build/release/pykeep"
PYKEEP = os.environ.get("PYKEEP_BINARY") or shutil.which("pykeep") or str(BUILT)
IDLE = 30 * 60  # seconds without a question, after which Python is put to rest
MAX_STEPS = 100  # of the model and its tools, for one answer
EXPORTS = {"notebook.ipynb": "application/x-ipynb+json", "script.py": "text/x-python"}

PROMPT = """You analyse a CSV file for someone who does not program. It is loaded already, as the pandas
DataFrame `df`; variables stay from one run_python to the next. Say in one short sentence what you do
before each call. Show charts. End with what you found, in a few bullet points, with figures."""


def chat_model():
    """The model that MODEL names, as "anthropic:…" or "openai:…"; else the script."""
    return init_chat_model(os.environ["MODEL"]) if "MODEL" in os.environ else scripted_model()


class Analysis:
    def __init__(self, file: Path, question: str):
        self.file = file
        self.events = []  # what happened, in order; pages that come later read it from the start
        self.exports = {}  # file name -> text, as of the last answer
        self.questions = asyncio.Queue()
        self.questions.put_nowait(question)
        self.ended = False
        self._changed = asyncio.Condition()

    async def run(self):
        """Answers questions until none comes any more. Every way out ends the kernel and says so."""
        try:
            await self._run()
        except Exception as error:  # the page is where someone looks
            while getattr(error, "exceptions", ()):  # of the SDK's task groups
                error = error.exceptions[0]
            await self._tell("failed", text=str(error) or type(error).__name__)
        finally:
            self.ended = True
            await self._tell("ended")

    async def follow(self, seen=0):
        """The events from number `seen` on, as they come."""
        while True:
            async with self._changed:
                while seen >= len(self.events) and not self.ended:
                    await self._changed.wait()
            if seen >= len(self.events):
                return
            yield seen, self.events[seen]
            seen += 1

    async def _tell(self, kind, **what):
        self.events.append({"kind": kind, **what})
        async with self._changed:
            self._changed.notify_all()

    async def _run(self):
        server = {"transport": "stdio", "command": PYKEEP, "args": ["--upload-root", str(self.file.parent)]}
        server["env"] = dict(os.environ)  # a server the SDK starts sees little of it otherwise
        async with MultiServerMCPClient({"python": server}).session("python") as python:
            session = await self._load(python)
            progress = Callbacks(on_progress=self._progress)
            agent = create_agent(
                chat_model(), await load_mcp_tools(python, callbacks=progress), system_prompt=PROMPT
            )
            messages = []
            while question := await self._next_question():
                await self._tell("question", text=question)
                messages = await self._answer(agent, [*messages, {"role": "user", "content": question}])
                for name in EXPORTS:
                    export = await python.read_resource(f"pykeep://sessions/{session}/{name}")
                    self.exports[name] = export.contents[0].text
                await self._tell("answered")

    async def _next_question(self):
        try:
            return await asyncio.wait_for(self.questions.get(), IDLE)
        except TimeoutError:
            return None

    async def _load(self, python):
        """Puts the file into the session and reads it there; returns the session's handle."""
        uploaded = await python.call_tool("upload_file", {"path": str(self.file)})
        code = f"import pandas as pd\n\ndf = pd.read_csv({self.file.name!r})"
        loaded = await python.call_tool("run_python", {"code": code})
        for result in (uploaded, loaded):
            if result.isError:
                raise ValueError("\n".join(block.text for block in result.content if block.type == "text"))
        return loaded.meta["io.pykeep/execution"]["session"]

    async def _answer(self, agent, messages):
        """Lets the agent work, telling what it says and does; returns the conversation with that in it."""
        follow = {"stream_mode": ["messages", "updates"], "config": {"recursion_limit": MAX_STEPS}}
        async for mode, part in agent.astream({"messages": messages}, **follow):
            if mode == "messages":
                if isinstance(part[0], AIMessageChunk) and part[0].text:
                    await self._tell("words", text=part[0].text)
                continue
            for message in (m for update in part.values() for m in update["messages"]):
                messages.append(message)
                await self._tell_of_tools(message)
        return messages

    async def _tell_of_tools(self, message):
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                code = call["args"].get("code") or f"# {call['name']}: {call['args']}"
                await self._tell("code", id=call["id"], code=code)
        elif isinstance(message, ToolMessage):
            blocks = [
                {"image": f"data:{block['mime_type']};base64,{block['base64']}"}
                if block["type"] == "image"
                else {"text": block.get("text", "")}
                for block in message.content_blocks
            ]
            failed = message.status == "error"
            await self._tell("result", id=message.tool_call_id, blocks=blocks, failed=failed)

    async def _progress(self, progress, total, message, context):
        await self._tell("progress", text=message or "")
