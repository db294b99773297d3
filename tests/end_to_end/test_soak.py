"""Mixed load over HTTP with kills, disconnects and broken transfers, after which nothing is left behind.

PYKEEP_SOAK_SECONDS (20) is how long; each worker makes one visit after the other, chosen by a fixed seed.
A visit that is answered in another way than it expects is a failure, whatever else holds.
"""

import collections
import http.client
import itertools
import json
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time
import traceback

import leftovers
import pytest
from conftest import environment_in, program, until, with_sanitizer
from http_server import HttpServer
from mcp_client import LEGACY, MODERN, anonymous_bytes
from test_hibernation import images  # noqa: F401

SECONDS = float(os.environ.get("PYKEEP_SOAK_SECONDS", "20"))
IDENTS = itertools.count(1)  # of requests
WORKERS = 6
SPARES = 2
MIB = 1 << 20
MAY_GROW = with_sanitizer(24 * MIB)
OPTIONS = [
    *("--max-kernels", "64", "--idle-timeout", "2", "--session-ttl", "2", "--memory", "512MiB"),
    *("--checkpoint-cells", "2", "--upload-max", "64MiB", "--max-mcp-sessions", "32"),
    *("--spares", str(SPARES)),
]


class Unexpected(Exception):
    pass


def expect(condition, *told):
    if not condition:
        raise Unexpected(*told)


class Legacy:
    """An MCP session of 2025-11-25 on a connection that is kept."""

    def __init__(self, server):
        self.server = server
        self.handle = None  # of its session, once a result has named it
        self.connection = server.connect()
        self.headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": LEGACY,
        }
        client = {"name": "soak", "version": "1"}
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client}
        status, headers, _ = self.exchange("POST", self.message("initialize", params))
        expect(status == 200, status)
        self.headers["Mcp-Session-Id"] = headers["Mcp-Session-Id"]

    @staticmethod
    def message(method, params):
        return json.dumps({"jsonrpc": "2.0", "id": next(IDENTS), "method": method, "params": params})

    @classmethod
    def call(cls, name, arguments, progress=False):
        meta = {"_meta": {"progressToken": 1}} if progress else {}
        return cls.message("tools/call", {"name": name, "arguments": arguments, **meta})

    def exchange(self, method, body=None):
        self.connection.request(method, "/mcp", body, self.headers)
        response = self.connection.getresponse()
        return response.status, response.headers, response.read()

    def tool(self, name, /, progress=False, **arguments):
        """The text of a result, and whether it came as a stream."""
        status, headers, body = self.exchange("POST", self.call(name, arguments, progress))
        expect(status == 200, status, body)
        streamed = headers["Content-Type"].startswith("text/event-stream")
        if streamed:
            body = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: {")][-1]
        result = json.loads(body)["result"]
        self.handle = result.get("_meta", {}).get("io.pykeep/execution", {}).get("session", self.handle)
        return "\n".join(block.get("text", "") for block in result["content"]), streamed

    def run(self, code, **arguments):
        return self.tool("run_python", code=code, **arguments)[0]

    def send_and_leave(self, code, after):
        """Starts a cell and goes away; the MCP session stays."""
        self.connection.request("POST", "/mcp", self.call("run_python", {"code": code}), self.headers)
        time.sleep(after)
        self.connection.close()

    def end(self):
        text, _ = self.tool("close_session", session=self.handle)
        expect("losed" in text, text)
        status, _, _ = self.exchange("DELETE")
        expect(status in (200, 204), status)
        self.connection.close()


class Modern:
    """A session of pykeep's, by its handle, with a connection for each call of 2026-07-28."""

    def __init__(self, server, handle=None):
        self.server = server
        self.handle = handle or handle_in(server.call_tool("create_session").text)

    def tool(self, tool, /, **arguments):
        return self.server.call_tool(tool, {"session": self.handle, **arguments}).text

    def run(self, code, **arguments):
        return self.tool("run_python", code=code, **arguments)

    def send_and_leave(self, code, after):
        """Starts a cell and goes away, which cancels it."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        arguments = {"session": self.handle, "code": code}
        params = {"name": "run_python", "arguments": arguments, "_meta": meta}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": "tools/call",
            "Mcp-Name": "run_python",
        }
        connection = self.server.connect()
        connection.request("POST", "/mcp", body, headers)
        time.sleep(after)
        connection.close()

    def end(self):
        text = self.tool("close_session")
        expect("losed" in text, text)


def handle_in(text):
    found = re.search(r"\b[a-z2-7]{26}\b", text)
    expect(found, text)
    return found[0]


def url_in(text):
    found = re.search(r"http://[^\s/]+(/files/[a-z2-7]{26})", text)
    expect(found, text)
    return found[1]


class Soak:
    def __init__(self, server, with_images):
        self.server = server
        self.with_images = with_images
        self.counts = collections.Counter()
        self.failures = []
        self.left = collections.deque()  # sessions that nobody uses: (handle, value of x)
        self.tickets = collections.deque(maxlen=50)

    # ---- visits: each takes its own random numbers and expects every answer ----

    def cells(self, chance):
        session = chance.choice((Legacy, Modern))(self.server)
        number = chance.randrange(10**6)
        session.run(f"x = {number}")
        for step in range(chance.randrange(1, 5)):
            text = session.run("x += 1; x")
            expect(text.endswith(str(number + step + 1)), text)
        if isinstance(session, Modern) and chance.random() < 0.5:
            self.left.append((session.handle, number + step + 1))
        elif isinstance(session, Legacy) and chance.random() < 0.3:
            session.connection.close()  # an MCP session that is never used again
        else:
            session.end()

    def come_back(self, chance):
        """To a session that may run, sleep on disk, or be going there."""
        if not self.left:
            return
        handle, number = self.left.popleft()
        session = Modern(self.server, handle)
        text = session.run("x")
        if self.with_images:
            expect(text.endswith(str(number)), text)
        else:
            expect(text.endswith(str(number)) or "NameError" in text, text)
        session.end()

    def streamed(self, chance):
        session = Legacy(self.server)
        code = "import time\nfor i in range(3): print(i); time.sleep(1)"
        text, streamed = session.tool("run_python", progress=True, code=code)
        expect(streamed and "0\n1\n2\n" in text, streamed, text)
        session.end()

    def left_alone(self, chance):
        """A legacy client that disconnects has cancelled nothing."""
        session = Legacy(self.server)
        session.run("import time")
        session.send_and_leave("time.sleep(0.5); y = 1", chance.uniform(0.1, 0.4))
        text = session.run("y")
        expect(text.endswith("1"), text)
        session.end()

    def cancelled(self, chance):
        """A modern one has."""
        session = Modern(self.server)
        session.run("z = 7")
        session.send_and_leave("while True: pass", chance.uniform(0.1, 0.4))
        text = session.run("z")
        expect(text.endswith("7"), text)
        session.end()

    def killed(self, chance):
        session = chance.choice((Legacy, Modern))(self.server)
        end = chance.choice(("os._exit(3)", "os.kill(os.getpid(), 11)", "os.kill(os.getpid(), 9)"))
        session.run("x = 1")
        text = session.run(f"import os; {end}")
        expect("the kernel died" in text, text)
        text = session.run("2 + 2")
        expect(text.endswith("4"), text)
        session.end()

    def timed_out(self, chance):
        session = Modern(self.server)
        text = session.run("while True: pass", timeout=1)
        expect("timed out" in text, text)
        text = session.run("2 + 2")
        expect(text.endswith("4"), text)
        session.end()

    def transfers(self, chance):
        session = Modern(self.server)
        data = chance.randbytes(chance.randrange(1, 4 * MIB))
        path = url_in(session.tool("upload_file", name="x.bin"))
        self.tickets.append(("PUT", path))
        self.break_off(f"PUT {path} HTTP/1.1\r\nContent-Length: {len(data) + 1}", data[: len(data) // 2])
        for _ in range(400):  # the server has yet to see that the client has gone
            status, _, body = self.server.request("PUT", path, data)
            if status != 409:
                break
            time.sleep(0.05)
        expect(status == 201, status, body)
        path = url_in(session.tool("download_file", path="x.bin"))
        self.tickets.append(("GET", path))
        self.break_off(f"GET {path} HTTP/1.1", b"")
        status, _, body = self.server.request("GET", path)
        expect(status == 200 and body == data, status, len(body), len(data))
        text = session.run("import os; print(sorted(os.listdir('.')))")
        expect("['x.bin']" in text, text)
        session.end()
        expect(self.server.request("GET", path)[0] in (404, 410), "the ticket outlived its session")

    def break_off(self, head, body):
        host, port = self.server.address.split(":")
        with socket.create_connection((host, int(port)), timeout=60) as client:
            client.sendall(f"{head}\r\nHost: {self.server.address}\r\n\r\n".encode() + body)
            if not body:
                client.recv(1000)

    def listening(self, chance):
        session = Legacy(self.server)
        headers = {**session.headers, "Accept": "text/event-stream"}
        stream = self.server.connect()
        stream.request("GET", "/mcp", headers=headers)
        expect(stream.getresponse().status == 200, "no stream")
        status, _, body = session.exchange("POST", session.message("tools/list", {}))  # spares are made then
        expect(status == 200 and b"run_python" in body, status, body)
        stream.close()
        session.connection.close()

    def oldest_transport(self, chance):
        stream = self.server.connect()
        stream.request("GET", "/sse", headers={"Accept": "text/event-stream"})
        events = stream.getresponse()
        expect(events.status == 200, events.status)

        def data():
            while not (line := events.readline()).startswith(b"data: "):
                expect(line, "the stream ended")
            return line[6:].decode().strip()

        path = data()
        client = {"name": "soak", "version": "1"}
        params = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client}
        body = Legacy.message("initialize", params)
        status, _, text = self.server.request("POST", path, body, {"Content-Type": "application/json"})
        expect(status == 202, status, text)
        expect("serverInfo" in data(), "no answer to initialize")
        stream.close()

    def garbage(self, chance):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        status, _, _ = self.server.request("POST", "/mcp", b"{" * chance.randrange(1, 2000), headers)
        expect(status == 400, status)
        host, port = self.server.address.split(":")
        with socket.create_connection((host, int(port)), timeout=60) as client:
            client.sendall(chance.randbytes(chance.randrange(1, 4000)))

    def snapshots(self, chance):
        if not self.with_images:
            return
        session = Modern(self.server)
        session.run("x = 5; open('f', 'w').write('file')")
        made = handle_in(session.tool("snapshot"))
        restored = self.server.call_tool("restore_snapshot", {"snapshot": made})
        fork = Modern(self.server, handle_in(restored.text))
        text = fork.run("print(x, open('f').read())")
        expect(text.endswith("5 file\n"), text)
        for each in (session, fork):
            each.end()
        self.server.call_tool("delete_snapshot", {"snapshot": made})

    VISITS = {
        cells: 6,
        come_back: 4,
        streamed: 1,
        left_alone: 1,
        cancelled: 1,
        killed: 2,
        timed_out: 1,
        transfers: 2,
        listening: 2,
        oldest_transport: 2,
        garbage: 2,
        snapshots: 1,
    }

    # ---- all together ----

    def load(self, seconds, seed):
        end = time.monotonic() + seconds

        def work(number):
            chance = random.Random(seed * 1000 + number)
            while time.monotonic() < end and len(self.failures) < 10:
                (visit,) = chance.choices(list(self.VISITS), self.VISITS.values())
                try:
                    visit(self, chance)
                    self.counts[visit.__name__] += 1
                except (Unexpected, OSError, http.client.HTTPException, ValueError, LookupError, Exception):
                    self.failures.append(f"{visit.__name__}: {traceback.format_exc(limit=-4)}")

        threads = [threading.Thread(target=work, args=(number,)) for number in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds + 180)
            expect(not thread.is_alive(), "a visit does not end")

    def settle(self, limit=60.0):
        """Closes all sessions and waits until only spares are left; what is still there otherwise."""
        self.left.clear()
        end = time.monotonic() + limit
        while time.monotonic() < end:
            text = self.server.call_tool("list_sessions").text
            for handle in re.findall(r"^([a-z2-7]{26})\b", text, re.MULTILINE):
                self.server.call_tool("close_session", {"session": handle})
            processes = leftovers.descendants(self.server.process.pid)
            if len(processes) <= 3 * SPARES and not re.search(r"^[a-z2-7]{26}", text, re.MULTILINE):
                break
            time.sleep(0.2)
        time.sleep(1)  # for what ends behind the answers


def files_in(state):
    """What the state directory holds besides the kernel package and what serves all sessions."""
    return sorted(
        str(path.relative_to(state))
        for name in ("sessions", "snapshots")
        for path in state.joinpath(name).glob("*")
        if path.name != "lock"
    ) + sorted(str(path.relative_to(state)) for path in state.rglob("*.part*"))


def test_mixed_load_leaves_nothing_behind(tmp_path, request):
    environment = environment_in(tmp_path)
    state = tmp_path / "state"
    try:
        request.getfixturevalue("images")
        with_images = True
    except pytest.skip.Exception:
        with_images = False
    with HttpServer([program("PYKEEP_BINARY")], *OPTIONS, env=environment) as server:
        pid = server.process.pid
        soak = Soak(server, with_images)
        soak.load(max(5.0, SECONDS / 10), seed=1)
        soak.settle()
        before, held = anonymous_bytes(pid), leftovers.descriptors(pid)
        soak.counts.clear()
        started = time.monotonic()
        soak.load(SECONDS, seed=2)
        taken = time.monotonic() - started
        soak.settle()
        after, held_after = anonymous_bytes(pid), leftovers.descriptors(pid)
        visits = ", ".join(f"{name} {count}" for name, count in sorted(soak.counts.items()))
        print(
            f"{sum(soak.counts.values())} visits in {taken:.0f} s ({visits}), {len(soak.failures)} unexpected; "
            f"server {before / MIB:.1f} -> {after / MIB:.1f} MiB, "
            f"{len(held)} -> {len(held_after)} descriptors",
            file=sys.stderr,
        )
        assert not soak.failures, "\n".join(soak.failures)
        for method, path in soak.tickets:
            assert server.request(method, path)[0] in (404, 410)
        assert len(leftovers.descendants(pid)) <= 3 * SPARES
        assert len(leftovers.groups_of(pid)) <= 3 * SPARES  # one for each controller at most
        # A spare holds a few; there may be fewer or more of them than before.
        more = collections.Counter(held_after) - collections.Counter(held)
        assert sum(more.values()) <= 8 * SPARES, more
        assert files_in(state) == []
        assert after - before < MAY_GROW
        assert server.stop() == 0
        assert "Sanitizer" not in server.stderr, server.stderr
    until(lambda: leftovers.strays(tmp_path) == [])
    # A group whose processes were still dying is removed by the next server.
    subprocess.run([program("PYKEEP_BINARY"), "run", "-c", "1"], env=environment, check=True, timeout=60)
    assert leftovers.groups_of(pid) == []
