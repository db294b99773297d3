"""What an operator sees of `pykeep http`: metrics, the audit file, logs, rate limits, signals."""

import collections
import hashlib
import json
import re
import resource
import signal
import socket
import subprocess

import pytest
from conftest import environment_in, program, until
from http_server import HttpServer

TOKEN = "operator-0123456789-abcdefghij"
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def start(directory, *options, **more):
    environment = {**environment_in(directory), "PYKEEP_TOKEN": TOKEN}
    return HttpServer([program("PYKEEP_BINARY")], *options, env=environment, **more)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("operations")


@pytest.fixture(scope="module")
def audit_file(directory):
    return directory / "audit.jsonl"


@pytest.fixture(scope="module")
def server(directory, audit_file):
    options = ["--audit-file", str(audit_file), "--log-level", "info", "--log-format", "json"]
    with start(directory, *options) as server:
        yield server
        assert server.stop() == 0


def run(server, code, **arguments):
    return server.call_tool("run_python", {"code": code, **arguments}, headers=AUTHORIZED)


@pytest.fixture(scope="module")
def session(server):
    return re.search(r"[a-z2-7]{26}", server.call_tool("create_session", headers=AUTHORIZED).text)[0]


def metrics(server):
    """Samples by name and labels; and every line is of the text format."""
    status, headers, body = server.request("GET", "/metrics", headers=AUTHORIZED)
    assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
    samples = {}
    for line in body.decode().splitlines():
        if line.startswith("# "):
            assert re.fullmatch(r"# (HELP \w+ .+|TYPE \w+ (counter|gauge|histogram))", line), line
            continue
        found = re.fullmatch(r'(\w+(?:\{(?:\w+="[^"\\]*",?)+\})?) (\S+)', line)
        assert found, line
        assert found[1] not in samples, f"twice: {line}"
        samples[found[1]] = float(found[2])
    return samples


def test_metrics_count_what_happens(server, session):
    assert server.request("GET", "/metrics")[0] == 401
    run(server, "1", session=session)
    before = metrics(server)
    run(server, "print('x' * 1000)", session=session)
    run(server, "1/0", session=session)
    run(server, "import time; time.sleep(9)", session=session, timeout=1)
    run(server, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", session=session)
    server.request("GET", "/a/path/of/the/clients/own", headers=AUTHORIZED)
    server.request("POST", "/mcp", headers={"Authorization": "Bearer nobody"})
    after = metrics(server)
    grown = collections.Counter(after)
    grown.subtract(before)
    for sample, growth in {
        'pykeep_executions_total{outcome="ok"}': 1,
        'pykeep_executions_total{outcome="raised"}': 1,
        'pykeep_executions_total{outcome="timed_out"}': 1,
        'pykeep_executions_total{outcome="kernel_died"}': 1,
        'pykeep_kernel_ends_total{cause="signal"}': 1,
        "pykeep_execution_duration_seconds_count": 4,
        'pykeep_http_requests_total{path="/mcp",status="200"}': 4,
        'pykeep_http_requests_total{path="/mcp",status="401"}': 1,
        'pykeep_http_requests_total{path="other",status="404"}': 1,
        "pykeep_authentication_failures_total": 1,
    }.items():
        assert grown[sample] == growth, sample
    assert grown["pykeep_execution_output_bytes_total"] >= 1000
    assert sum(after[name] for name in after if name.startswith("pykeep_kernel_start_seconds_count")) >= 1
    assert after["pykeep_sessions"] >= 1
    assert after["process_resident_memory_bytes"] > 1 << 20
    assert (
        after['pykeep_http_bytes_total{direction="in"}'] > before['pykeep_http_bytes_total{direction="in"}']
    )
    assert session not in str(after) and "clients" not in str(after)


def test_the_audit_file_has_a_line_an_execution_and_no_code(server, session, audit_file):
    code = "secret_of_the_user = 'hunter2'; print(secret_of_the_user)"
    ident = run(server, code, session=session).execution["execution"]
    lines = until(lambda: [line for line in audit_file.read_text().splitlines() if ident in line])
    assert len(lines) == 1 and "hunter2" not in audit_file.read_text()
    line = json.loads(lines[0])
    assert line["principal"] == "token" and line["session"] == session and line["outcome"] == "ok"
    assert line["code_sha256"] == hashlib.sha256(code.encode()).hexdigest()
    assert line["duration_ms"] >= 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert audit_file.stat().st_mode & 0o777 == 0o600


def test_the_audit_file_can_be_rotated(server, session, audit_file):
    run(server, "1", session=session)
    old = audit_file.with_suffix(".1")
    audit_file.rename(old)
    run(server, "'before'", session=session)
    server.process.send_signal(signal.SIGHUP)
    until(audit_file.exists)
    before = old.read_text()
    ident = run(server, "'after'", session=session).execution["execution"]
    until(lambda: ident in audit_file.read_text())
    assert old.read_text() == before


def test_a_request_is_one_line_with_its_trace_and_without_code(server, session):
    headers = {**AUTHORIZED, "traceparent": TRACE}
    arguments = {"code": "hidden = 'hunter3'", "session": session}
    server.call_tool("run_python", arguments, headers=headers)
    line = until(lambda: next((x for x in events(server, "request") if x.get("traceparent") == TRACE), None))
    assert line["method"] == "POST" and line["path"] == "/mcp" and line["status"] == "200"
    assert line["principal"] == "token" and line["mcp_name"] == "run_python" and line["id"]
    execution = events(server, "execution")[-1]
    assert execution["session"] == session and execution["execution"] and execution["outcome"] == "ok"
    assert execution["request"] == line["id"]
    assert "hunter3" not in server.stderr and TOKEN not in server.stderr


def test_an_execution_names_its_request_in_every_form_of_mcp(server, session):
    """The line of a request and that of what it ran share its id: modern, legacy, in a batch, HTTP+SSE."""
    code = {"name": "run_python", "arguments": {"code": "1", "session": session}}
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": code}
    both = {**AUTHORIZED, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def joined(path, message, headers):
        seen = len(events(server, "execution"))
        status = server.request("POST", path, json.dumps(message), {**both, **headers})[0]
        assert status in (200, 202)
        execution = until(lambda: events(server, "execution")[seen:])[-1]
        return until(lambda: [x for x in events(server, "request") if x["id"] == execution["request"]])[-1]

    params = {
        "protocolVersion": "2025-03-26",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    ident = server.request("POST", "/mcp", json.dumps(initialize), both)[1]["Mcp-Session-Id"]
    for message in (call, [call]):
        assert joined("/mcp", message, {"Mcp-Session-Id": ident})["mcp_session"] == ident[:8]

    stream = server.connect()
    stream.request("GET", "/sse", headers={**AUTHORIZED, "Accept": "text/event-stream"})
    response = stream.getresponse()
    response.readline()
    path = response.readline().decode().removeprefix("data: ").strip()
    server.request("POST", path, json.dumps(initialize), both)
    assert joined(path, call, {})["path"] == "/messages"
    stream.close()


@pytest.mark.parametrize(
    "sent, status",
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\nHost: localhost\r\n\r\n", 400),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n", 431),
        (b"GET / HTTP/3.0\r\n\r\n", 505),
    ],
)
def test_what_is_no_request_is_counted_and_logged_all_the_same(server, sent, status):
    sample = f'pykeep_http_requests_total{{path="other",status="{status}"}}'
    before = metrics(server).get(sample, 0)
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        client.sendall(sent)
        assert client.recv(4096).startswith(f"HTTP/1.1 {status} ".encode())
    assert metrics(server)[sample] == before + 1
    until(lambda: [x for x in events(server, "request") if x["status"] == str(status)])


@pytest.mark.parametrize(
    "trace",
    [
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        TRACE + "-more",
        "nonsense",
    ],
)
def test_a_traceparent_that_is_none_is_not_logged(server, trace):
    count = len(events(server, "request"))
    server.request("GET", "/healthz", headers={"traceparent": trace})
    lines = until(lambda: [x for x in events(server, "request")[count:] if x["path"] == "/healthz"])
    assert "traceparent" not in lines[-1]


def events(server, name):
    """The log's events of a name; and every line of the log is an object."""
    lines = [json.loads(line) for line in server.stderr.splitlines() if not line.startswith("pykeep:")]
    assert all("time" in line and "level" in line for line in lines)
    return [line for line in lines if line.get("event") == name]


def test_lines_for_people(tmp_path):
    with start(tmp_path, "--log-level", "info") as server:
        server.request("GET", "/healthz")
        until(lambda: "request id=" in server.stderr)
        assert re.search(r"\[info\] request id=\S+ method=GET path=/healthz status=200 ", server.stderr)


def test_too_many_requests_are_told_when_to_come_back(tmp_path):
    with start(tmp_path, "--rate-limit", "1") as server:
        answers = []  # ten at once, and one more for each second that this takes
        while len(answers) < 100 and (not answers or answers[-1][0] != 429):
            answers.append(server.request("GET", "/metrics", headers=AUTHORIZED))
        statuses = [status for status, _, _ in answers]
        assert statuses[0] == 200 and statuses[-1] == 429
        assert int(answers[-1][1]["Retry-After"]) >= 1
        assert server.request("GET", "/healthz")[0] == 200


def test_an_audit_file_that_cannot_be_written_stops_nothing(tmp_path):
    audit = tmp_path / "audit.jsonl"
    with start(tmp_path, "--audit-file", str(audit), "--log-level", "warning") as server:
        ident = server.call_tool("create_session", headers=AUTHORIZED)
        handle = re.search(r"[a-z2-7]{26}", ident.text)[0]
        run(server, "1", session=handle)
        until(lambda: audit.stat().st_size > 0)
        # As on a full disk: what is beyond this size cannot be written.
        pid, (_, most) = server.process.pid, resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (audit.stat().st_size + 10, most))
        for _ in range(3):
            assert not run(server, "1", session=handle).is_error
        until(lambda: metrics(server)["pykeep_audit_lost_total"] == 3)
        until(lambda: "lines are lost" in server.stderr)
        assert server.stderr.count("lines are lost") == 1
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
        ident = run(server, "1", session=handle).execution["execution"]
        until(lambda: ident in audit.read_text())
        assert json.loads(audit.read_text().splitlines()[-1])["execution"] == ident
        until(lambda: "written again" in server.stderr)


@pytest.mark.parametrize("place", ["/nowhere/audit", "/dev/null"])
def test_an_audit_file_that_cannot_be_opened_is_said_at_once(tmp_path, place):
    command = [program("PYKEEP_BINARY"), "http", "--listen", "127.0.0.1:0", "--audit-file", place]
    done = subprocess.run(command, env=environment_in(tmp_path), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and place in done.stderr
