"""The least HTTP client that can load a server from one process: keep-alive sockets, requests made
beforehand, one at a time on each connection, no more parsing than it takes to see a response's end."""

import contextlib
import json
import os
import select
import socket
import time

LEGACY, MODERN = "2025-11-25", "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Channel:
    """A connection, and the request that is sent over it again and again."""

    def __init__(self, address, *, receive_buffer=None):
        self.address = address
        host, port = address.split(":")
        self.socket = socket.socket()
        self.socket.settimeout(60)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.headers = {}
        self.request = b""
        self.expected = b""
        self.sent = 0.0
        self._received = b""

    def initialize(self):
        """Begins a legacy MCP session, which all requests from now on belong to."""
        self.message(
            "initialize",
            {
                "protocolVersion": LEGACY,
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            },
        )
        head = self.once().partition(b"\r\n\r\n")[0].decode()
        values = dict(line.split(": ", 1) for line in head.split("\r\n")[1:])
        session = next(value for name, value in values.items() if name.lower() == "mcp-session-id")
        self.headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY}
        return self

    def message(self, method, params=None, *, expected=b'"result"', modern=False):
        """What to send from now on, and what every answer must contain."""
        params = dict(params or {})
        headers = self.headers
        if modern:
            params["_meta"] = META
            headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
            if "name" in params:
                headers["Mcp-Name"] = params["name"]
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        self.request = self._head("POST /mcp", headers, len(body)) + body
        self.expected = expected
        return self

    def cell(self, code, expected, **arguments):
        params = {"name": "run_python", "arguments": {"code": code, **arguments}}
        return self.message("tools/call", params, expected=expected)

    def get(self, path, accept="*/*"):
        self.request = self._head(f"GET {path}", {**self.headers, "Accept": accept})
        self.expected = b""
        return self

    def _head(self, what, headers, length=None):
        lines = [f"{what} HTTP/1.1", f"Host: {self.address}"]
        if length is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {length}"]
        if "Accept" not in headers:
            lines.append("Accept: application/json, text/event-stream")
        return (
            "\r\n".join(lines + [f"{name}: {value}" for name, value in headers.items()]) + "\r\n\r\n"
        ).encode()

    def send(self):
        self._received = b""
        self.sent = time.perf_counter()
        self.socket.sendall(self.request)

    def receive(self):
        """Takes what is there; the response once it is whole, else None."""
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError(f"closed by the server after {self._received[-300:]!r}")
        self._received += data
        if not is_whole(self._received):
            return None
        if not self._received.startswith(b"HTTP/1.1 200") or self.expected not in self._received:
            raise AssertionError(f"unexpected: {self._received[:2000]!r}")
        return self._received

    def once(self) -> bytes:
        self.send()
        while (response := self.receive()) is None:
            pass
        return response

    def close(self):
        self.socket.close()


def is_whole(received):
    head, blank, body = received.partition(b"\r\n\r\n")
    if not blank:
        return False
    lowered = head.lower()
    at = lowered.find(b"content-length:")
    if at >= 0:
        return len(body) >= int(lowered[at + 15 :].split(b"\r\n", 1)[0])
    return body.endswith(b"0\r\n\r\n")


def drive(channels, seconds):
    """All connections at once, each asking again when it has its answer. The latencies, in seconds."""
    poll = select.epoll()
    by_descriptor = {channel.socket.fileno(): channel for channel in channels}
    latencies = []
    with contextlib.closing(poll):
        for descriptor, channel in by_descriptor.items():
            poll.register(descriptor, select.EPOLLIN)
            channel.send()
        until = time.perf_counter() + seconds
        waiting = len(channels)
        while waiting:
            ready = poll.poll(60)
            if not ready:
                raise TimeoutError(f"{waiting} requests got no answer within a minute")
            for descriptor, _ in ready:
                channel = by_descriptor[descriptor]
                if channel.receive() is None:
                    continue
                now = time.perf_counter()
                latencies.append(now - channel.sent)
                if now < until:
                    channel.send()
                else:
                    waiting -= 1
    return latencies


def processor_time(pid) -> float:
    """Seconds that a process, without its children, has computed."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
