"""What users of other servers that run code reported about HTTP, each as a test named by what must not
happen here. Where a complaint is held by a test elsewhere:

| Complaint | Held by |
|---|---|
| a new MCP session for every call loses all variables | here, both eras |
| an id that a restart made stale is kept by the client for ever | here (kill -9); legacy_mcp_test.cpp "sessions outlive the server" |
| an unknown session was answered 503 | here; legacy_mcp_test.cpp "every refusal has its status" |
| a kernel ended and its variables were silently gone | here; test_hibernation.py, sessions_test.cpp |
| 10 KB of base64 break off, 35 KB come damaged, a download is 308,000 characters | here (50 MB by ticket) |
| a file in a folder lands beside it; "success" without a file; text is assumed | here |
| an upload over a directory, an aborted one, a full workspace, ranges | test_transfers.py |
| writing to a stream that was closed spoils the next | here |
| calls side by side make two kernels of one session | here |
| blank lines of stdout vanish in SSE | here |
| headers wait for the first event | here |
| a proxy keeps events back | test_reverse_proxies.py |
| a malformed request ends the server | here; listener_test.cpp, ladder_test.cpp, the fuzz targets |
| a slow reader, 1 GB of body | here (the body); listener_test.cpp "clients have their time", legacy_mcp_test.cpp |
| DNS rebinding; a server open to the network without a token | test_http_limits.py, host_policy_test.cpp |
| an id opens what is another's | here (streams, sessions, executions, resources); test_http_auth.py, legacy_mcp_test.cpp |
| a method that needs no login runs code | test_http_auth.py "nothing is served without a token" |
| a cell reaches the server on loopback | here |
| names become arguments or headers | here; file_headers_test.cpp |

Not for this program: a connection to a kernel that breaks between two calls (kernels are children on
pipes, there is none to lose), cached handles of paused sandboxes (one process has all), sandboxes of a
cloud, and files by URL (a server that fetches what it is told to is asked for what only it can reach).
"""

import concurrent.futures
import contextlib
import hashlib
import json
import os
import random
import re
import signal
import socket
import struct
import time

import pytest
from conftest import best_of_three, environment_in, program, until, with_sanitizer
from http_server import HttpServer
from mcp_client import LEGACY, MODERN, McpError, anonymous_bytes

MIB = 1 << 20
ALICE = {"Authorization": "Bearer alice-3q2-7wAAbcdEFGhij_klmn"}
BOB = {"Authorization": "Bearer bob-00112233445566778899aabbccdd"}
JSON_BOTH = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
STREAM = {"Accept": "text/event-stream"}
HANDLE = r"[a-z2-7]{26}"


def start(directory, *options):
    environment = environment_in(directory)
    tokens = directory / "tokens"
    lines = [f"{name}: {token['Authorization'][7:]}\n" for name, token in (("alice", ALICE), ("bob", BOB))]
    tokens.touch(0o600)
    tokens.write_text("".join(lines))
    options = ["--token-file", str(tokens), "--log-level", "info", *options]
    return HttpServer([program("PYKEEP_BINARY")], *options, env=environment)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with start(tmp_path_factory.mktemp("peers"), "--upload-max", "64MiB") as server:
        yield server


class Mcp:
    """A legacy MCP session of a principal, as a client that initializes has it."""

    def __init__(self, server, principal=ALICE, revision=LEGACY):
        self.server = server
        params = {"protocolVersion": revision, "capabilities": {}}
        params["clientInfo"] = {"name": "test", "version": "1"}
        self.headers = {**JSON_BOTH, **principal}
        status, headers, _ = self.post("initialize", params)
        assert status == 200
        self.headers |= {"Mcp-Session-Id": headers["Mcp-Session-Id"], "MCP-Protocol-Version": revision}

    def post(self, method, params=None, ident=1, **headers):
        message = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params or {}}
        return self.server.request("POST", "/mcp", json.dumps(message), self.headers | headers)

    def call(self, tool, /, progress=False, **arguments):
        """The messages that came, the answer last."""
        params = {"name": tool, "arguments": arguments}
        if progress:
            params["_meta"] = {"progressToken": "p"}
        return messages_in(self.post("tools/call", params))

    def run(self, code, **arguments):
        return text_of(self.call("run_python", code=code, **arguments))

    def resume(self, after):
        """Status and rest of a stream, after an event of it."""
        headers = self.headers | STREAM | {"Last-Event-ID": after}
        status, _, body = self.server.request("GET", "/mcp", headers=headers, timeout=20)
        return status, body


def messages_in(response):
    status, headers, body = response
    assert status == 200, body
    if headers["Content-Type"] == "application/json":
        return [json.loads(body)]
    return [json.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: ")]


def text_of(messages):
    assert "result" in messages[-1], messages[-1]
    return "\n".join(block.get("text", "") for block in messages[-1]["result"]["content"])


def raw(server, method, path, headers, body=b""):
    """A request of which the test reads as much of the answer as it likes."""
    host, port = server.address.split(":")
    client = socket.create_connection((host, int(port)), timeout=20)
    length = {"Content-Length": len(body)} if body else {}
    lines = "".join(
        f"{name}: {value}\r\n" for name, value in ({"Host": "localhost"} | headers | length).items()
    )
    client.sendall(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body)
    return client


def read_until(client, end, limit=20.0):
    client.settimeout(limit)
    received = b""
    while end not in received and (part := client.recv(65536)):
        received += part
    return received


def reset(client):
    """Closes as a machine does that has lost power: nothing is said."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def new_session(server, principal=ALICE):
    return re.search(HANDLE, server.call_tool("create_session", headers=principal).text)[0]


def ticket(text):
    return re.search(rf"/files/{HANDLE}", text)[0]


# ---- sessions and their state ----


def test_a_client_with_a_new_mcp_session_for_every_call_keeps_its_variables(server):
    handle = new_session(server)
    Mcp(server).run("x = 41", session=handle)
    assert "42" in Mcp(server).run("x + 1", session=handle)
    modern = server.call_tool("run_python", {"code": "x + 2", "session": handle}, headers=ALICE)
    assert "43" in modern.text
    other = new_session(server)
    assert "NameError" in Mcp(server).run("x", session=other)
    server.call_tool("close_session", {"session": other}, headers=ALICE)


def test_a_restart_leaves_no_client_with_a_dead_id_and_no_silent_loss(tmp_path):
    """kill -9 in the middle of an upload: the same Mcp-Session-Id goes on, the first result says what was lost,
    and there is no half file."""
    with start(tmp_path) as server:
        client = Mcp(server)
        handle = re.search(HANDLE, client.run("x = 41; open('kept.txt', 'w').write('kept')"))[0]
        path = ticket(text_of(client.call("upload_file", name="half.bin", session=handle)))
        upload = raw(server, "PUT", path, {"Content-Length": "1000000"})
        upload.sendall(bytes(500_000))
        saved = tmp_path / "state" / "mcp-sessions.json"
        until(lambda: saved.exists() and client.headers["Mcp-Session-Id"] in saved.read_text())
        server.process.kill()
        server.process.wait()
        upload.close()
    with start(tmp_path) as client.server:
        said = client.run("print('x' in globals(), open('kept.txt').read())", session=handle)
        assert "kernel was" in said and "kept" in said
        assert ("restored" in said) == ("True kept" in said)
        listed = text_of(client.call("list_files", session=handle))
        assert "kept.txt" in listed and "half.bin" not in listed
        assert list((tmp_path / "state").rglob("half*")) == []
        client.headers["Mcp-Session-Id"] = "A" * 26
        assert client.post("ping")[0] == 404
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        status, headers, _ = client.post("initialize", params)
        assert status == 200 and headers["Mcp-Session-Id"] != "A" * 26
        assert client.server.stop() == 0


def test_a_session_that_is_unknown_is_404_and_never_503(server):
    client = Mcp(server)
    for ident in ("A" * 26, "nonsense", "x" * 5000, "../../etc/passwd"):
        client.headers["Mcp-Session-Id"] = ident
        assert client.post("ping")[0] == 404
        assert server.request("DELETE", "/mcp", headers=client.headers)[0] == 404


def test_fifty_first_calls_at_once_make_one_kernel(server):
    handle = new_session(server)
    client = Mcp(server)
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        code = "import os; print('pid', os.getpid())"
        calls = [
            pool.submit(
                client.post,
                "tools/call",
                {"name": "run_python", "arguments": {"code": code, "session": handle}},
                i,
            )
            for i in range(50)
        ]
        texts = [call.result()[2].decode() for call in calls]
    pids = {found for text in texts for found in re.findall(r"pid (\d+)", text)}
    assert len(pids) == 1
    refused = [text for text in texts if "pid" not in text]
    assert all("Too many executions wait" in text for text in refused)  # 16 wait, the others are told
    assert len(texts) - len(refused) >= 17
    server.call_tool("close_session", {"session": handle}, headers=ALICE)


# ---- files ----


def test_fifty_megabytes_come_whole_and_no_message_has_them(server):
    handle = new_session(server)
    content = random.Random(7).randbytes(50 * MIB)
    answer = server.call_tool("upload_file", {"session": handle, "name": "data/big.bin"}, headers=ALICE).text
    assert len(answer) < 2000
    before = anonymous_bytes(server.process.pid)
    assert server.request("PUT", ticket(answer), content)[0] == 201
    assert anonymous_bytes(server.process.pid) - before < 16 * MIB
    code = "import hashlib; print(hashlib.sha256(open('data/big.bin', 'rb').read()).hexdigest())"
    digest = hashlib.sha256(content).hexdigest()
    assert digest in server.call_tool("run_python", {"code": code, "session": handle}, headers=ALICE).text
    answer = server.call_tool(
        "download_file", {"session": handle, "path": "data/big.bin"}, headers=ALICE
    ).text
    assert len(answer) < 2000
    assert hashlib.sha256(server.request("GET", ticket(answer))[2]).hexdigest() == digest
    server.call_tool("close_session", {"session": handle}, headers=ALICE)


@pytest.fixture(scope="module")
def handle(server):
    return new_session(server)


def run(server, handle, code):
    return server.call_tool("run_python", {"code": code, "session": handle}, headers=ALICE).text


@pytest.mark.parametrize("name", ["../../etc/x", "/etc/x", "a/../../x", "", ".", "nul\0byte", "n" * 300])
def test_a_name_that_is_none_is_refused_before_there_is_a_ticket(server, handle, name):
    result = server.call_tool("upload_file", {"session": handle, "name": name}, headers=ALICE)
    assert result.is_error and "/files/" not in result.text


@pytest.mark.parametrize("name", ["a/b/ü 名.csv", "n" * 255, "--rm -rf", "two\nlines", 'quo"te', "x.xlsx"])
def test_a_file_is_where_its_name_says_byte_for_byte(server, handle, name):
    for content in (b"", b"\x00\xff\r\n PK\x03\x04"):
        answer = server.call_tool("upload_file", {"session": handle, "name": name}, headers=ALICE).text
        status, _, said = server.request("PUT", ticket(answer), content)
        assert status == 201, said
        assert repr(content) in run(server, handle, f"print(open({name!r}, 'rb').read())")


def test_a_name_of_the_sandbox_ends_no_header_and_leaves_no_quotes(server, handle):
    name = 'a\r\nSet-Cookie: x=1\r\n\r\n<b>"; filename=evil.html'
    run(server, handle, f"open({name!r}, 'wb').write(bytes(3))")
    answer = server.call_tool("download_file", {"session": handle, "path": name}, headers=ALICE).text
    status, headers, body = server.request("GET", ticket(answer))
    assert (status, body) == (200, bytes(3))
    assert "Set-Cookie" not in headers and headers["Content-Type"] == "application/octet-stream"
    assert headers["Content-Disposition"].startswith('attachment; filename="a__Set-Cookie: x=1____<b>_; ')


def test_a_ticket_cannot_be_bent_into_a_path(server, handle):
    answer = server.call_tool("upload_file", {"session": handle, "name": "bent"}, headers=ALICE).text
    good = ticket(answer)
    for path in (
        good + "/",
        good + "/../x",
        good.upper(),
        good[:-1],
        good + "%00",
        "/files/../mcp",
        "/files//" + good,
    ):
        for verb in ("GET", "PUT"):
            assert server.request(verb, path)[0] in (401, 404), (verb, path)
    for path in ("/files/", "/files/" + "a" * 7000):
        assert server.request("PUT", path, b"x")[0] == 404
    assert server.request("PUT", good, b"x")[0] == 201


# ---- streams ----


def test_blank_lines_and_whatever_looks_like_an_event_pass_through_a_stream(server, handle):
    printed = "one\n\n\ntwo & three\r\n\ndata: {}\n\nevent: message\nid: 9\n\n: comment\n"
    code = f"import time; time.sleep(3); print({printed!r}, end='')"
    params = {"name": "run_python", "arguments": {"code": code, "session": handle}}
    status, headers, body = Mcp(server).post("tools/call", params)
    assert headers["Content-Type"] == "text/event-stream"
    messages = messages_in((status, headers, body))
    assert len(messages) == 1
    assert "one\n\n\ntwo & three" in text_of(messages) and "data: {}\n\nevent: message" in text_of(messages)


def test_the_head_of_a_stream_does_not_wait_for_its_first_event(server):
    def seconds():
        begin = time.monotonic()
        with raw(server, "GET", "/mcp", Mcp(server).headers | STREAM) as client:
            assert b"text/event-stream" in read_until(client, b"\r\n\r\n")
        with raw(server, "GET", "/sse", ALICE | STREAM) as client:
            assert b"event: endpoint" in read_until(client, b"\n\n")
        return time.monotonic() - begin

    best_of_three(3, seconds)


def test_streams_that_are_torn_off_spoil_no_other_and_leave_nothing(server, handle):
    """Clients that reset in the middle of an answer, of a GET stream, of an SSE connection, of a head."""
    client = Mcp(server)
    client.run("'the kernel is up'", session=handle)
    before = descriptors(server)
    code = "import time\nfor i in range(20): print(i, flush=True); time.sleep(0.05)"
    params = {
        "name": "run_python",
        "arguments": {"code": code, "session": handle},
        "_meta": {"progressToken": 1},
    }
    for i in range(4):
        body = json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": params}).encode()
        torn = raw(server, "POST", "/mcp", client.headers, body)
        read_until(torn, b"\r\n\r\n")
        reset(torn)
        reset(raw(server, "GET", "/mcp", client.headers | STREAM))
        reset(raw(server, "GET", "/sse", ALICE | STREAM))
        reset(raw(server, "POST", "/mcp", client.headers | {"Content-Length": "1000000"}))
    assert "alive and well" in client.run("print('alive', 'and well')", session=handle)
    until(lambda: descriptors(server) <= before)
    assert server.request("GET", "/healthz")[0] == 200


def test_kernels_that_are_killed_end_their_streams_with_a_result(server):
    handle = new_session(server)
    client = Mcp(server)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        code = "import os, signal, time; print('on', flush=True); time.sleep(1.2); os.kill(os.getpid(), signal.SIGKILL)"
        call = pool.submit(client.run, code, session=handle)
        assert "kernel" in call.result(60)
    assert "2" in client.run("1 + 1", session=handle)
    server.call_tool("close_session", {"session": handle}, headers=ALICE)


# ---- whose it is ----


def test_an_id_is_no_authorization(server):
    """Sessions, streams, executions, files, resources and tickets of one principal, by the other's token."""
    alice, bob = Mcp(server, ALICE), Mcp(server, BOB)
    stolen = alice.headers | BOB
    assert (
        server.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}), stolen)[0]
        == 404
    )
    assert server.request("GET", "/mcp", headers=stolen | STREAM)[0] == 404
    assert server.request("DELETE", "/mcp", headers=stolen)[0] == 404
    assert alice.post("ping")[0] == 200

    with raw(server, "GET", "/sse", ALICE | STREAM) as stream:
        path = re.search(rb"/messages\?sessionId=\S+", read_until(stream, b"\n\n"))[0].decode()
        ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert server.request("POST", path, ping, JSON_BOTH | BOB)[0] == 404
        assert server.request("POST", path, ping, JSON_BOTH | ALICE)[0] == 202

    handle = new_session(server, ALICE)
    ident = alice.call("run_python", code="'secret of alice'", session=handle)[-1]["result"]["_meta"]
    ident = ident["io.pykeep/execution"]["execution"]
    for tool, arguments in [
        ("wait_execution", {"execution": ident}),
        ("interrupt_execution", {"execution": ident}),
        ("interrupt_execution", {"session": handle}),
        ("download_file", {"session": handle, "path": "x"}),
        ("upload_file", {"session": handle, "name": "x"}),
        ("snapshot", {"session": handle, "name": "theirs"}),
    ]:
        with contextlib.suppress(McpError):
            result = server.call_tool(tool, arguments, headers=BOB)
            assert result.is_error and "secret of alice" not in result.text, tool
    for uri in (f"pykeep://sessions/{handle}/files/x", f"pykeep://sessions/{handle}"):
        answer = json.loads(bob.post("resources/read", {"uri": uri})[2])
        assert "error" in answer and "secret" not in str(answer)
    assert handle not in bob.post("resources/list")[2].decode()
    server.call_tool("close_session", {"session": handle}, headers=ALICE)


def test_an_event_id_opens_the_stream_of_its_own_session_only(server, handle):
    owner = Mcp(server)
    code = "import time; time.sleep(3); print('for the owner')"
    _, _, body = owner.post(
        "tools/call", {"name": "run_python", "arguments": {"code": code, "session": handle}}
    )
    first = re.search(rb"id: (\S+-0)\n", body)[1].decode()
    assert b"for the owner" in owner.resume(first)[1]
    for other in (Mcp(server), Mcp(server, BOB)):
        status, body = other.resume(first)
        assert status == 400 and b"for the owner" not in body
    for forged in ("x", "-1", "post-a-1", first[:-1] + "99999999999999999999", "-".join("a" * 2000)):
        assert owner.resume(forged)[0] == 400, forged
    assert owner.resume(first[:-1] + "18446744073709551615") == (200, b"")


def test_a_cell_does_not_reach_the_server_that_runs_it(server, handle):
    port = server.address.split(":")[1]
    code = (
        "import socket\n"
        "for host in ('127.0.0.1', '0.0.0.0', 'localhost'):\n"
        "    try: socket.create_connection((host, PORT), 2); print('reached', host)\n"
        "    except OSError: print('refused')"
    )
    assert run(server, handle, code.replace("PORT", port)).count("refused") == 3


# ---- malformed, and too much ----

PIECES = [
    *(b"{", b"}", b"[", b"]", b'"', b":", b",", b"null", b"\x00", b"\xff", b"1e999", b"-", b'"\\ud800"'),
    *(b'"jsonrpc":"2.0"', b'"id":1', b'"id":{}', b'"id":1.5', b'"method":"ping"', b'"method":"tools/call"'),
    *(b'"params":{}', b'"params":[]', b'"result":{}', b'"error":{}', b'"method":"initialize"'),
    *(b'"method":"notifications/cancelled"', b'"params":{"name":"run_python","arguments":{"code":1}}'),
]


def test_a_thousand_malformed_messages_on_every_path_are_answered_and_cost_nothing(server):
    rnd = random.Random(20)
    headers = [
        Mcp(server).headers,
        Mcp(server, revision="2025-03-26").headers,
        {**JSON_BOTH, **ALICE, "MCP-Protocol-Version": MODERN, "Mcp-Method": "ping"},
        {**JSON_BOTH, **ALICE},
    ]
    connection = server.connect()
    before, statuses = anonymous_bytes(server.process.pid), set()
    for i in range(1000):
        parts = [rnd.choice(PIECES) for _ in range(rnd.randint(0, 8))]
        body = b"".join(parts) if i % 2 else b'{"jsonrpc":"2.0",' + b",".join(parts) + b"}"
        path = rnd.choice(["/mcp", "/mcp?x=1", "/messages?sessionId=" + "a" * 26, "/messages"])
        connection.request("POST", path, body, rnd.choice(headers))
        response = connection.getresponse()
        response.read()
        statuses.add(response.status)
    connection.close()
    assert statuses <= {200, 202, 400, 404, 406, 415, 429}
    assert anonymous_bytes(server.process.pid) - before < 8 * MIB
    assert server.request("GET", "/healthz")[0] == 200


def test_a_body_of_a_gigabyte_is_413_before_it_is_read(server):
    headers = Mcp(server).headers | {"Content-Length": str(1 << 30)}
    with raw(server, "POST", "/mcp", headers) as client:
        assert read_until(client, b"\r\n\r\n").startswith(b"HTTP/1.1 413 ")
    with raw(server, "POST", "/mcp", Mcp(server).headers | {"Transfer-Encoding": "chunked"}) as client:
        chunk = b"100000\r\n" + b" " * MIB + b"\r\n"
        with contextlib.suppress(OSError):
            for _ in range(64):
                client.sendall(chunk)
        with contextlib.suppress(ConnectionError):
            assert read_until(client, b"\r\n\r\n").startswith(b"HTTP/1.1 413 ")


def test_small_values_without_number_do_not_become_much_memory(server):
    """30 MiB of zeros are 15 million values, and were 1.2 GiB of memory."""
    client = Mcp(server)

    def resident(field):
        with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
            return int(re.search(rf"{field}:\s+(\d+) kB", status.read())[1]) * 1024

    resident_before, before = resident("VmRSS"), anonymous_bytes(server.process.pid)
    for values in (b"0," * (15 * MIB), b"[]," * (10 * MIB), b'{"":0},' * (4 * MIB)):
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":[' + values + b"0]}}"
        status, _, answer = server.request("POST", "/mcp", body, client.headers)
        assert status == 400 and json.loads(answer)["error"]["code"] == -32700
    assert resident("VmHWM") - resident_before < with_sanitizer(160 * MIB)
    assert anonymous_bytes(server.process.pid) - before < 16 * MIB


def test_a_storm_of_sessions_stays_within_its_limit(server):
    """Clients that initialize and never come back, each with the largest capabilities it may have."""
    before = anonymous_bytes(server.process.pid)
    params = {"protocolVersion": LEGACY, "capabilities": {"sampling": {"x": [0] * 3900}}}
    params["clientInfo"] = {"name": "storm", "version": "1"}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    message = message.replace(", 0", ",0")
    connection = server.connect()
    for _ in range(1500):
        connection.request("POST", "/mcp", message, JSON_BOTH | ALICE)
        response = connection.getresponse()
        response.read()
        assert response.status == 200
    connection.close()
    metrics = server.request("GET", "/metrics", headers=ALICE)[2].decode()
    assert float(re.search(r"^pykeep_mcp_sessions (\S+)", metrics, re.MULTILINE)[1]) <= 1024 + 100
    assert anonymous_bytes(server.process.pid) - before < 24 * MIB
    assert Mcp(server, BOB).post("ping")[0] == 200


def test_slow_transfers_of_one_do_not_keep_others_from_theirs(server, handle):
    run(server, handle, "open('large.bin', 'wb').truncate(100 << 20)")
    answer = server.call_tool("download_file", {"session": handle, "path": "large.bin"}, headers=ALICE).text
    before = descriptors(server)
    unread = [raw(server, "GET", ticket(answer), {}) for _ in range(80)]
    heads = [read_until(client, b"\r\n\r\n")[9:12] for client in unread]
    assert set(heads) == {b"200", b"503"}
    theirs = new_session(server, BOB)
    put = server.call_tool("upload_file", {"session": theirs, "name": "x"}, headers=BOB).text
    assert server.request("PUT", ticket(put), b"bob's")[0] == 201
    for client in unread:
        client.close()
    until(lambda: descriptors(server) <= before + 5)
    assert server.request("GET", ticket(answer), headers={"Range": "bytes=0-9"})[0] == 206
    server.call_tool("close_session", {"session": theirs}, headers=BOB)


def test_a_server_that_is_told_to_stop_under_load_stops(tmp_path):
    server = start(tmp_path, "--grace", "1")
    client = Mcp(server)
    client.run("1")
    with concurrent.futures.ThreadPoolExecutor(24) as pool:

        def busy(i):
            with contextlib.suppress(OSError, AssertionError, ValueError):
                while True:
                    if i % 3:
                        Mcp(server).post("tools/list")
                    else:
                        client.run("import time; time.sleep(0.2)")

        for i in range(24):
            pool.submit(busy, i)
        time.sleep(1)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(20) == 0
    assert "defect" not in server.stderr and "failed inside" not in server.stderr
