"""In place of LangChain's PythonREPLTool, which runs a model's code in your own process."""

from __future__ import annotations

import base64
import re
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import Field

from pykeep.client import Python

FENCE = re.compile(r"\A\s*```(?:python|py)?[ \t]*\n?(.*?)\n?```\s*\Z", re.DOTALL | re.IGNORECASE)


class PythonREPLTool(BaseTool):
    """The same name and the same one argument; what the code does, it does in a sandbox.

    Variables stay from call to call. A result is a string, or, when the code drew something, a list of text
    and image blocks. `python_repl=Python("--session", NAME)` keeps the variables over restarts.
    """

    name: str = "Python_REPL"
    description: str = (
        "A Python shell. Use it to execute Python; variables stay from call to call. The value of the last "
        "expression, what is printed, and figures come back. Files are in /workspace."
    )
    python_repl: Any = Field(default_factory=Python)
    sanitize_input: bool = True

    def _run(self, query: str):
        result = self.python_repl.run(_code(query) if self.sanitize_input else query)
        if not result.images:
            return result.text
        images = [
            {"type": "image", "base64": base64.b64encode(image).decode(), "mime_type": _mime_type(image)}
            for image in result.images
        ]
        return [{"type": "text", "text": result.text}, *images]


def _code(query: str) -> str:
    """What a model wrapped in a fence, as some do."""
    fenced = FENCE.match(query)
    return fenced[1] if fenced else query


def _mime_type(image: bytes) -> str:
    return "image/jpeg" if image.startswith(b"\xff\xd8") else "image/png"
