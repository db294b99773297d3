"""`pykeep http` as a process for tests, and just enough of a client to call its tools. Standard library only.

with HttpServer([binary], env=environment) as server:
    result = server.call_tool("run_python", {"code": "1+1"})
    status, headers, body = server.request("GET", "/healthz")
"""

import collections
import http.client
import json
import re
import signal
import subprocess
import threading
import urllib.parse

from mcp_client import MODERN, McpError, ToolResult

STDERR_KEPT = 500  # lines


class HttpServer:
    def __init__(self, command, *options, env=None, start_limit=60.0):
        listen = ["http", "--listen", "127.0.0.1:0", *options]
        self.process = subprocess.Popen([*command, *listen], env=env, stderr=subprocess.PIPE)
        self._stderr = collections.deque(maxlen=STDERR_KEPT)
        self._serving = threading.Event()
        threading.Thread(target=self._read_stderr, daemon=True).start()
        self._serving.wait(start_limit)
        found = re.search(r"serving MCP at (http://\S+)/mcp", self.stderr)
        if not found:
            self.process.kill()
            self.process.wait()
            raise RuntimeError(f"the server did not start:\n{self.stderr}")
        self.url = found[1]  # "http://127.0.0.1:PORT"
        self.address = urllib.parse.urlsplit(self.url).netloc

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.stop()

    def _read_stderr(self):
        for line in self.process.stderr:
            self._stderr.append(line.decode(errors="replace"))
            if "serving MCP at" in self._stderr[-1]:
                self._serving.set()
        self._serving.set()

    @property
    def stderr(self):
        return "".join(self._stderr)

    def stop(self, limit=20.0) -> int:
        """Ends it as an operator does, and returns its status; kills it after `limit`."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise TimeoutError(f"the server still ran {limit} s after SIGTERM") from None

    def connect(self, timeout=60.0) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.address, timeout=timeout)

    def request(self, method, path, body=None, headers=None, timeout=60.0):
        """One request on a connection of its own; `path` may be a URL of this server. Returns status, headers
        and body."""
        connection = self.connect(timeout)
        try:
            connection.request(method, path.removeprefix(self.url), body, headers or {})
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def call_tool(self, name, arguments=None, *, headers=None, timeout=60.0) -> ToolResult:
        """A call of revision 2026-07-28: stateless, so name a session to come back to it."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": name, "arguments": arguments or {}, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        sent = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": "tools/call",
            "Mcp-Name": name,
            **(headers or {}),
        }
        _, received, body = self.request("POST", "/mcp", json.dumps(message), sent, timeout)
        if received["Content-Type"].startswith("text/event-stream"):
            body = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: ")][-1]
        answer = json.loads(body)
        if "error" in answer:
            raise McpError(answer["error"])
        return ToolResult(answer["result"], 0.0)
