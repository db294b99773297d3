"""A Python for your program: `Python().run("1 + 1")`. It speaks MCP to a pykeep of its own, with nothing
but the standard library."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
import threading
from dataclasses import dataclass

from pykeep import program

REVISION = "2026-07-28"  # of MCP: it needs no handshake
NEW_SESSION = re.compile(r"\A\[New session .*\]\n")
EXECUTION = "io.pykeep/execution"
WAIT = 3600  # seconds: the longest that a call may wait
STOP_LIMIT = 60  # seconds for the server to put its kernels on disk


class PykeepError(Exception):
    """The code was not run, or its result did not come back. An exception in the code is no such error."""


@dataclass
class Result:
    """What one piece of code gave: everything to read, and its figures as files' bytes."""

    text: str
    images: list[bytes]
    failed: bool  # an exception, a timeout; `text` says which


class Python:
    """An isolated Python whose variables stay from run to run.

    `arguments` go to pykeep, as in Python("--session", "main"), which finds its variables again in the
    next program, or Python("--upload-root", "data"). The server starts with the first run and ends with
    `close`, with the `with` block, or with this process. Threads may share one; their runs take turns.
    """

    def __init__(self, *arguments: str):
        self._arguments = arguments
        self._server: subprocess.Popen[bytes] | None = None
        self._ids = itertools.count(1)
        self._turn = threading.Lock()

    def __enter__(self) -> Python:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, code: str, timeout: float = 600) -> Result:
        """Runs code to its end. After `timeout` seconds, or by Ctrl-C here, it is interrupted, and variables
        are kept."""
        answer = self.call("run_python", code=code, timeout=timeout, wait=WAIT)
        while (execution := answer.get("_meta", {}).get(EXECUTION, {})).get("status") == "running":
            answer = self.call("wait_execution", execution=execution["execution"], wait=WAIT)  # has all again
        texts = [block["text"] for block in answer["content"] if block["type"] == "text"]
        images = [block["data"] for block in answer["content"] if block["type"] == "image"]
        return Result(
            NEW_SESSION.sub("", "\n".join(texts)),
            [base64.b64decode(image) for image in images],
            answer.get("isError", False),
        )

    def call(self, tool: str, **arguments: object) -> dict:
        """Calls any of pykeep's tools and returns its result as MCP has it: snapshot, upload_file, ..."""
        with self._turn:
            ident = next(self._ids)
            try:
                self._send(
                    {"id": ident, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
                )
                return self._answer(ident)
            except KeyboardInterrupt:
                self._send({"method": "notifications/cancelled", "params": {"requestId": ident}})
                raise

    def close(self) -> None:
        """Ends the server. Its session stays on disk for a week, to be found by its name or handle."""
        with self._turn:
            if self._server:
                self._end()

    def _send(self, message: dict) -> None:
        server = self._started()
        message.setdefault("params", {})["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientInfo": {"name": "pykeep-python", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        try:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            server.stdin.flush()
        except OSError:
            self._lost()

    def _answer(self, ident: int) -> dict:
        for line in self._started().stdout:
            message = json.loads(line)
            if message.get("id") == ident:  # else the late one of a call that was given up
                if "error" in message:
                    raise PykeepError(message["error"]["message"])
                return message["result"]
        self._lost()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._server is None:
            command, environment = _program()
            pipe = subprocess.PIPE
            self._server = subprocess.Popen(
                [command, *self._arguments], stdin=pipe, stdout=pipe, env=environment, start_new_session=True
            )
        return self._server

    def _lost(self) -> None:
        raise PykeepError(f"pykeep ended with status {self._end()}; the next call starts another one")

    def _end(self) -> int:
        server, self._server = self._server, None
        with contextlib.suppress(OSError):  # it has gone, with something unsent
            server.stdin.close()
        try:
            server.wait(STOP_LIMIT)
        except subprocess.TimeoutExpired:
            server.kill()
        server.stdout.close()
        return server.wait()


def _program() -> tuple[str, dict[str, str]]:
    """PYKEEP_BINARY, else the program of this package, else the one on the PATH."""
    if chosen := os.environ.get("PYKEEP_BINARY"):
        return chosen, dict(os.environ)
    if os.path.exists(program.path()):
        return program.path(), program.environment()
    if found := shutil.which("pykeep"):
        return found, dict(os.environ)
    raise PykeepError(
        "This pykeep package carries no program (it is no wheel), and none is on the PATH: "
        "set PYKEEP_BINARY to one that is built or installed."
    )
