"""What the programs here share: where pykeep is, and a model that needs no key."""

import itertools
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

BUILT = Path(__file__).resolve().parents[2] / "build/release/pykeep"
PYKEEP = os.environ.get("PYKEEP_BINARY") or shutil.which("pykeep") or str(BUILT)
IDS = itertools.count(1)


class ScriptedModel(GenericFakeChatModel):
    """LangChain's test double, made to call tools. Each line of its script is what to say: a message,
    or a function from the messages so far to one, so that it can quote what a tool returned."""

    messages: Iterator[Any]

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        line = next(self.messages)
        said = line(messages) if callable(line) else line
        return ChatResult(generations=[ChatGeneration(message=said)])


def chat_model(*script):
    """The model that MODEL names, as "anthropic:claude-sonnet-5" or "openai:gpt-5.5"; else the script."""
    return (
        init_chat_model(os.environ["MODEL"])
        if "MODEL" in os.environ
        else ScriptedModel(messages=iter(script))
    )


def python(code, **arguments):
    """A line of a script: the call of run_python."""
    call = {"name": "run_python", "args": {"code": code, **arguments}, "id": f"call-{next(IDS)}"}
    return AIMessage(content="", tool_calls=[call])


def quoting(words):
    """A line of a script: words with what Python returned last in place of {}."""
    return lambda messages: AIMessage(content=words.format(output(messages[-1])))


def output(message: BaseMessage):
    """What the code printed and returned: without the lines in [] that pykeep adds for the model."""
    return re.sub(r"^\[.*\]\n?", "", message.text, flags=re.MULTILINE).strip()


def show(messages):
    """Prints a part of a conversation as a person would want to read it."""
    for message in messages:
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                print(f"  {call['name']}\n{indent(call['args'].get('code', str(call['args'])), '    > ')}")
        text = message.text.rstrip()
        if isinstance(message, ToolMessage):
            print(indent(text, "    < "))
        elif text:
            print(f"{message.type}: {text}")
        for image in (block for block in message.content_blocks if block["type"] == "image"):
            print(f"    < ({image['mime_type']}, {len(image['base64'])} characters of base64)")
