"""`pykeep http` on a bad network: who may talk to it at all, what a client may cost, how it ends."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

import pytest
from conftest import best_of_three, environment_in, program, until
from http_server import HttpServer
from mcp_client import LEGACY, anonymous_bytes

MIB = 1 << 20
JSON_BOTH = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
TOKEN = "kIeAnNmUWn0yZ8WvVJ5cS2r1bq7dT4xP"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    environment = environment_in(tmp_path_factory.mktemp("limits"))
    options = ["--allowed-origin", "https://app.example.com", "--allowed-host", "keep.example.com"]
    with HttpServer([program("PYKEEP_BINARY")], *options, env=environment) as server:
        yield server


@pytest.fixture
def fresh(tmp_path):
    """fresh(*options, ...) -> another server, of the test's own."""
    servers = []

    def start(*options, env=None, **more):
        environment = {**environment_in(tmp_path), **(env or {})}
        servers.append(HttpServer([program("PYKEEP_BINARY")], *options, env=environment, **more))
        return servers[-1]

    yield start
    for server in servers:
        server.process.kill()
        server.process.wait()


def connect(server):
    host, port = server.address.split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def message(method, params=None, **fields):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}, **fields})


def initialize(server):
    params = {
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    status, headers, _ = server.request("POST", "/mcp", message("initialize", params), JSON_BOTH)
    assert status == 200
    return {**JSON_BOTH, "Mcp-Session-Id": headers["Mcp-Session-Id"], "MCP-Protocol-Version": LEGACY}


def is_well(server):
    try:
        return server.request("GET", "/healthz", timeout=30)[0] == 200
    except OSError as gone:
        pytest.fail(f"{gone}; its status: {server.process.poll()}\n{server.stderr}")


# ---- who may talk to it ----

FOREIGN = [
    {"Host": "evil.test"},
    {"Host": "localhost.evil.test:8420"},
    {"Host": "127.0.0.1.evil.test"},
    {"Origin": "https://evil.test"},
    {"Origin": "http://localhost.evil.test"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=lambda headers: "; ".join(map(": ".join, headers.items())))
def test_a_web_page_reaches_no_path_with_any_verb(server, headers):
    for path in ("/mcp", "/sse", "/messages", "/files/x", "/healthz", "/readyz", "/metrics", "/nothing", "/"):
        for verb in ("GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "HEAD"):
            status, received, _ = server.request(verb, path, headers=headers)
            assert status == 403, f"{verb} {path}"
            assert "Access-Control-Allow-Origin" not in received


def test_a_request_for_nobody_in_particular_is_refused(server):
    with connect(server) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 400 ")


def test_a_page_that_was_allowed_may_call_and_read_what_it_needs(server):
    origin = {"Origin": "https://app.example.com"}
    wish = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "mcp-session-id"}
    status, headers, _ = server.request("OPTIONS", "/mcp", headers={**origin, **wish})
    assert status == 204
    assert headers["Access-Control-Allow-Origin"] == "https://app.example.com"
    assert headers["Access-Control-Allow-Headers"] == "mcp-session-id"
    status, headers, _ = server.request("POST", "/mcp", message("ping"), {**JSON_BOTH, **origin})
    assert headers["Access-Control-Allow-Origin"] == "https://app.example.com"
    assert "Mcp-Session-Id" in headers["Access-Control-Expose-Headers"]
    assert server.request("GET", "/healthz", headers={"Host": "keep.example.com"})[0] == 200


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:8420"])
def test_an_address_that_others_reach_takes_a_token(tmp_path, address):
    command = [program("PYKEEP_BINARY"), "http", "--listen", address]
    done = subprocess.run(command, env=environment_in(tmp_path), capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert "--token-file" in done.stderr


@pytest.mark.parametrize(
    "address", ["localhost", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:99999", "::1:8420", "here:1"]
)
def test_an_address_that_is_none_is_explained(tmp_path, address):
    command = [program("PYKEEP_BINARY"), "http", "--listen", address]
    done = subprocess.run(command, env=environment_in(tmp_path), capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert "expected ADDRESS:PORT" in done.stderr


def test_a_port_that_is_taken_is_explained(server, tmp_path):
    command = [program("PYKEEP_BINARY"), "http", "--listen", server.address]
    done = subprocess.run(command, env=environment_in(tmp_path), capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert "Address already in use" in done.stderr


def test_with_a_token_only_its_owner_gets_in_and_health_stays_open(fresh):
    server = fresh(env={"PYKEEP_TOKEN": TOKEN})
    for path in ("/mcp", "/sse", "/metrics", "/nothing"):
        for verb in ("GET", "POST", "DELETE"):
            assert server.request(verb, path, headers=JSON_BOTH)[0] == 401, f"{verb} {path}"
    known = {**JSON_BOTH, "Authorization": f"Bearer {TOKEN}"}
    assert server.request("POST", "/mcp", message("ping"), known)[0] != 401
    assert server.request("GET", "/nothing", headers=known)[0] == 404
    assert is_well(server)
    assert TOKEN not in server.stderr


# ---- what a client may cost ----


def test_garbage_ends_its_own_connection_only(server):
    garbage = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        b"\0" * 1000,
        b"GET / HTTP/9.9\r\n\r\n",
        os.urandom(4096),
    ]
    for piece in garbage:
        with connect(server) as client:
            client.sendall(piece)
            client.shutdown(socket.SHUT_WR)
            while client.recv(4096):
                pass
    assert is_well(server)


def test_a_thousand_idle_connections_cost_little(server):
    is_well(server)
    before = anonymous_bytes(server.process.pid)
    clients = [connect(server) for _ in range(1000)]
    for client in clients:  # each has had an answer and keeps its connection
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    for client in clients:
        assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
    cost = anonymous_bytes(server.process.pid) - before
    assert is_well(server)
    for client in clients:
        client.close()
    print(f"1,000 idle connections: {cost / 1024:.0f} KiB")
    assert cost < 24 * MIB


def test_two_hundred_open_streams_cost_little(fresh):
    server = fresh()
    initialize(server)
    before = anonymous_bytes(server.process.pid)
    streams = []
    for _ in range(200):
        headers = {**initialize(server), "Accept": "text/event-stream", "Host": "localhost"}
        client = connect(server)
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        client.sendall(f"GET /mcp HTTP/1.1\r\n{lines}\r\n".encode())
        assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
        streams.append(client)
    cost = anonymous_bytes(server.process.pid) - before
    assert is_well(server)
    for client in streams:
        client.close()
    print(f"200 open streams with their MCP sessions: {cost / 1024:.0f} KiB")
    assert cost < 24 * MIB


def test_clients_that_never_finish_their_heads_keep_nobody_out(server):
    slow = [connect(server) for _ in range(300)]
    for client in slow:
        client.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: ")
    for _ in range(3):
        for client in slow:
            client.sendall(b"a")
        assert is_well(server)
    for client in slow:
        client.close()


def test_a_client_that_asks_and_never_reads_cannot_grow_the_server(server):
    is_well(server)
    headers = initialize(server)
    body = message("tools/list")
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
    request = (head + body).encode()
    before = anonymous_bytes(server.process.pid)
    client = connect(server)
    client.setblocking(False)
    sent, until = 0, time.monotonic() + 3
    while time.monotonic() < until:
        try:
            sent += client.send(request * 100)
        except BlockingIOError:
            time.sleep(0.02)
        except ConnectionError:
            break  # dropped, for what it sent ahead
    grown = anonymous_bytes(server.process.pid) - before
    assert is_well(server)
    client.close()
    assert grown < 16 * MIB, f"{sent} bytes of requests were taken"


def test_running_out_of_descriptors_is_survived(tmp_path):
    binary = program("PYKEEP_BINARY")
    if "address" in os.environ.get("PYKEEP_SANITIZE", ""):
        # AddressSanitizer reads /proc/self/maps when an exception is thrown, and aborts if it cannot.
        binary = pathlib.Path(__file__).parents[2] / "build/release/pykeep"
        if not binary.exists():
            pytest.skip(
                "AddressSanitizer needs descriptors of its own, and build/release/pykeep is not built"
            )
    command = ["prlimit", "--nofile=64:64", str(binary)]
    with HttpServer(command, env=environment_in(tmp_path)) as server:
        clients = [connect(server) for _ in range(120)]
        until(lambda: "Too many open files" in server.stderr)
        for client in clients:
            client.close()
        assert is_well(server)


# ---- how it ends ----


def test_it_ends_at_once_when_nothing_runs(fresh):
    def seconds():
        server = fresh()
        idle = connect(server)
        headers = {**initialize(server), "Accept": "text/event-stream", "Host": "localhost"}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        stream = connect(server)
        stream.sendall(f"GET /mcp HTTP/1.1\r\n{lines}\r\n".encode())
        assert stream.recv(4096).startswith(b"HTTP/1.1 200 ")
        begin = time.monotonic()
        assert server.stop() == 0
        assert idle.recv(1) == b""
        return time.monotonic() - begin

    best_of_three(3, seconds)


def start_cell(server, code):
    """A call in flight: the socket its answer will come over."""
    arguments = {"name": "run_python", "arguments": {"code": code}}
    body = message("tools/call", arguments)
    headers = {**initialize(server), "Host": "localhost", "Content-Length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    client = connect(server)
    client.settimeout(60)
    client.sendall(f"POST /mcp HTTP/1.1\r\n{lines}\r\n{body}".encode())
    return client


def takes_nobody(server):
    try:
        connect(server).close()
    except ConnectionRefusedError:
        return True
    return False


def kernels(server):
    text = server.request("GET", "/metrics")[2].decode()
    found = re.search(r"^pykeep_kernels\S* (\d+)", text, re.MULTILINE)
    return int(found[1]) if found else 0


def test_a_cell_that_runs_has_the_grace_to_end(fresh):
    server = fresh("--grace", "20")
    client = start_cell(server, "import time; time.sleep(2); print('finished')")
    until(lambda: kernels(server), 60)
    server.process.send_signal(signal.SIGTERM)
    received = b""
    while part := client.recv(65536):
        received += part
    assert b"finished" in received
    assert server.process.wait(20) == 0


def test_a_cell_that_runs_on_is_stopped_after_the_grace(fresh):
    def seconds():
        server = fresh("--grace", "1")
        start_cell(server, "import time; time.sleep(600)")
        until(lambda: kernels(server), 60)
        begin = time.monotonic()
        assert server.stop() == 0
        return time.monotonic() - begin

    best_of_three(8, seconds)


def test_the_second_signal_ends_it_at_once(fresh):
    server = fresh("--grace", "60")
    start_cell(server, "import time; time.sleep(600)")
    until(lambda: kernels(server), 60)
    server.process.send_signal(signal.SIGTERM)
    until(lambda: takes_nobody(server))  # two signals that come together are one
    assert server.process.poll() is None
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(20) == 128 + signal.SIGTERM


def test_readiness_is_what_doctor_says(server):
    status, _, body = server.request("GET", "/readyz")
    assert (status, body) == (200, b"ready\n")
