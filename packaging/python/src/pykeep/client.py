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
STOP_LIMIT = 5  # seconds for the server to put its kernels on disk, for which it takes two at most


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
        self._owner = 0  # the process whose child the server is
        self._interrupted = False  # by Ctrl-C, maybe in the middle of a line from or to the server
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
                self._interrupted = True
                self._send({"method": "notifications/cancelled", "params": {"requestId": ident}}, "\n")
                raise

    def close(self) -> None:
        """Ends the server. Its session stays on disk for a week, to be found by its name or handle."""
        with self._turn:
            if self._server and self._owner == os.getpid():
                self._end()

    def _send(self, message: dict, before: str = "") -> None:
        message.setdefault("params", {})["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientInfo": {"name": "pykeep-python", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        line = before + json.dumps({"jsonrpc": "2.0", **message}, allow_nan=False) + "\n"
        server = self._started()
        try:
            server.stdin.write(line.encode())
            server.stdin.flush()
        except OSError:
            self._lost()

    def _answer(self, ident: int) -> dict:
        for line in self._started().stdout:
            message = self._message(line)
            # Without an id: the server could not read the request, because it is too large, say.
            unread = "error" in message and message.get("id") is None and not self._interrupted
            if not unread and message.get("id") != ident:
                continue  # the late one of a call that was given up
            self._interrupted = False
            if "error" in message:
                raise PykeepError(message["error"]["message"])
            return message["result"]
        self._lost()

    def _message(self, line: bytes) -> dict:
        with contextlib.suppress(ValueError):
            if isinstance(message := json.loads(line), dict):
                return message
        if self._interrupted:  # the rest of a line
            return {}
        self._end(kill=True)
        raise PykeepError(f"the program is no pykeep: it says {line[:100]!r}")

    def _started(self) -> subprocess.Popen[bytes]:
        if self._server and self._owner != os.getpid():  # we are a fork: it is our parent's
            self._server = None
        if self._server is None:
            command, environment = _program()
            pipe = subprocess.PIPE
            try:
                self._server = subprocess.Popen(
                    [command, *self._arguments],
                    stdin=pipe,
                    stdout=pipe,
                    env=environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise PykeepError(f"pykeep does not start: {error}") from error
            self._owner = os.getpid()
        return self._server

    def _lost(self) -> None:
        raise PykeepError(f"pykeep ended with status {self._end()}; the next call starts another one")

    def _end(self, kill: bool = False) -> int:
        server, self._server = self._server, None
        with contextlib.suppress(OSError):  # it has gone, with something unsent
            server.stdin.close()
        if kill:
            server.kill()
        for stop in (server.terminate, server.kill):  # a fork of ours may keep its input open
            try:
                server.wait(STOP_LIMIT)
            except subprocess.TimeoutExpired:
                stop()
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
