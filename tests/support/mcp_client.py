"""A small MCP client over stdio for tests, the demo and the measurements. Standard library only.

    with Client([binary], era="legacy") as client:
        client.connect()
        result = client.call_tool("run_python", {"code": "1+1"})
        print(result.text, result.images, result.seconds)

Every wait has a limit (TimeoutError); a JSON-RPC error is an McpError; a server that ends early is a
ServerGone with what it wrote to stderr.
"""

import base64
import collections
import itertools
import json
import queue
import subprocess
import threading
import time
from dataclasses import dataclass, field

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
STDERR_KEPT = 200  # lines


class McpError(Exception):
    def __init__(self, error: dict):
        super().__init__(f"{error.get('code')}: {error.get('message')}")
        self.code = error.get("code")
        self.data = error.get("data")


class ServerGone(Exception):
    pass


@dataclass
class ToolResult:
    """What a model gets from one call, and what it cost."""

    raw: dict
    seconds: float
    notifications: list = field(default_factory=list)  # that arrived while it ran

    @property
    def content(self) -> list:
        return self.raw.get("content", [])

    @property
    def is_error(self) -> bool:
        return self.raw.get("isError", False)

    @property
    def text(self) -> str:
        return "\n".join(block["text"] for block in self.content if block["type"] == "text")

    @property
    def images(self) -> list:
        """The image blocks as (mime type, bytes)."""
        blocks = [block for block in self.content if block["type"] == "image"]
        return [(block["mimeType"], base64.b64decode(block["data"], validate=True)) for block in blocks]

    @property
    def execution(self) -> dict:
        return self.raw.get("_meta", {}).get("io.pykeep/execution", {})


class Client:
    def __init__(
        self, command, *, era="legacy", revision=None, env=None, cwd=None, timeout=60.0, answer=None
    ):
        """`env` replaces the environment. `answer(params)` answers elicitations; without it the client
        does not offer them."""
        self.modern = era == "modern"
        self.revision = revision or (MODERN if self.modern else LEGACY)
        self.timeout = timeout
        self.answer = answer
        self.notifications = []
        self.process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=cwd,
        )
        self._ids = itertools.count(1_000_001)  # no line that a test makes up asks under these
        self._answers = {}
        self._arrived = threading.Condition()
        self._ended = False
        self._to_write = queue.Queue()
        self._stderr = collections.deque(maxlen=STDERR_KEPT)
        for work in (self._read, self._write, self._read_stderr):
            threading.Thread(target=work, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.close()

    # ---- lifecycle ----

    def connect(self) -> dict:
        """`initialize` or `server/discover`; returns its result."""
        if self.modern:
            return self.request("server/discover")
        params = {
            "protocolVersion": self.revision,
            "capabilities": self.capabilities,
            "clientInfo": {"name": "pykeep-test-client", "version": "1"},
        }
        result = self.request("initialize", params)
        self.notify("notifications/initialized")
        return result

    def close(self, limit=20.0) -> int:
        """Ends the input, as clients end a server, and returns its status; kills it after `limit`."""
        self._to_write.put(None)
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise TimeoutError(f"the server still ran {limit} s after its input had ended") from None
        finally:
            self.process.stdin = None  # the writer closed it, or the process took it along

    @property
    def capabilities(self) -> dict:
        return {"elicitation": {}} if self.answer else {}

    @property
    def stderr(self) -> str:
        return "".join(self._stderr)

    # ---- requests ----

    def list_tools(self) -> list:
        return self.request("tools/list")["tools"]

    def call_tool(self, name, arguments=None, *, progress=False, timeout=None) -> ToolResult:
        params = {"name": name, "arguments": arguments or {}}
        started, seen = time.monotonic(), len(self.notifications)
        result = self.request("tools/call", params, progress=progress, timeout=timeout)
        while result.get("resultType") == "input_required":
            responses = {
                key: self.answer(asked["params"]) for key, asked in result.get("inputRequests", {}).items()
            }
            again = {**params, "inputResponses": responses}
            if "requestState" in result:
                again["requestState"] = result["requestState"]
            result = self.request("tools/call", again, progress=progress, timeout=timeout)
        return ToolResult(result, time.monotonic() - started, self.notifications[seen:])

    def request(self, method, params=None, *, progress=False, timeout=None) -> dict:
        return self.wait_for(self.start(method, params, progress=progress), timeout)

    def start(self, method, params=None, *, progress=False) -> int:
        """Sends a request and returns its id at once, for wait_for() or cancel()."""
        ident = next(self._ids)
        params = dict(params or {})
        meta = dict(params.pop("_meta", {}))
        if self.modern:
            meta["io.modelcontextprotocol/protocolVersion"] = self.revision
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities
        if progress:
            meta["progressToken"] = ident
        if meta:
            params["_meta"] = meta
        self.send({"jsonrpc": "2.0", "id": ident, "method": method, **({"params": params} if params else {})})
        return ident

    def wait_for(self, ident, timeout=None) -> dict:
        deadline = time.monotonic() + (timeout or self.timeout)
        with self._arrived:
            while ident not in self._answers:
                if self._ended:
                    raise ServerGone(f"the server ended; it wrote:\n{self.stderr}")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"no answer to request {ident}")
                self._arrived.wait(left)
            answer = self._answers.pop(ident)
        if "error" in answer:
            raise McpError(answer["error"])
        return answer["result"]

    def answered(self, ident) -> bool:
        with self._arrived:
            return ident in self._answers

    def cancel(self, ident, reason="the test wants so") -> None:
        self.notify("notifications/cancelled", {"requestId": ident, "reason": reason})

    def notify(self, method, params=None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})

    def send(self, message) -> None:
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        """Queues raw bytes; a server that does not read never blocks the caller."""
        self._to_write.put(data)

    # ---- threads ----

    def _write(self):
        stdin = self.process.stdin
        try:
            while (data := self._to_write.get()) is not None:
                stdin.write(data)
                stdin.flush()
            stdin.close()
        except (OSError, ValueError):
            pass  # the server has gone: the reader says so

    def _read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            with self._arrived:
                if "method" not in message:
                    self._answers[message.get("id")] = message
                elif "id" not in message:
                    self.notifications.append(message)
                else:
                    self._respond(message)
                self._arrived.notify_all()
        with self._arrived:
            self._ended = True
            self._arrived.notify_all()

    def _respond(self, message):
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "elicitation/create" and self.answer:
            reply["result"] = self.answer(message["params"])
        elif message["method"] == "ping":
            reply["result"] = {}
        else:
            reply["error"] = {"code": -32601, "message": "not offered by this client"}
        self.send(reply)

    def _read_stderr(self):
        for line in self.process.stderr:
            self._stderr.append(line.decode(errors="replace"))


def anonymous_bytes(pid: int) -> int:
    """What a process holds in memory, for tests of its limits. Without the pages of its program, which come
    as parts of it are used for the first time: with a sanitizer these are megabytes."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        fields = dict(line.split(":", 1) for line in status)
    return (int(fields["RssAnon"].split()[0]) + int(fields["RssShmem"].split()[0])) * 1024
