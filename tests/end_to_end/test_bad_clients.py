"""Clients that ask for what cannot be, take back what they asked for, or do not listen."""

import collections
import json
import os
import subprocess
import time

import pytest
from conftest import program, with_sanitizer
from mcp_client import McpError, ToolResult, anonymous_bytes

MB = 1 << 20
WRONG = {
    "string": [5, True, [], {"a": 1}, 1.5],
    "number": ["x", True, [], {}, 1e300, -1],
    "boolean": ["yes", 1, [], {}],
}
ENOUGH = {
    "code": "1",
    "name": "n",
    "text": "t",
    "path": "p",
    "execution": "e",
    "session": "s",
    "snapshot": "s",
}


def test_every_argument_of_every_tool_refuses_what_is_not_of_its_type(run):
    client = run.client
    tried = 0
    for tool in client.list_tools():
        schema = tool["inputSchema"]
        for name, wanted in schema.get("properties", {}).items():
            for value in WRONG[wanted["type"]]:
                arguments = {key: ENOUGH[key] for key in schema.get("required", [])}
                result = client.call_tool(tool["name"], {**arguments, name: value})
                assert result.is_error, (tool["name"], name, value)
                assert f"arguments.{name}: expected" in result.text, (tool["name"], name, result.text)
                tried += 1
        result = client.call_tool(tool["name"], {**ENOUGH, "nonsense": 1})
        assert result.is_error
        assert "unknown argument" in result.text
    assert tried > 80


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("a" * 255, None),
        ("é" * 127, None),
        ("日本語.csv", None),
        ("-rf", None),
        ("./x", None),
        ("/workspace/ok", None),
        ("a//b", None),
        ("a" * 256, "at most 255 bytes"),
        ("é" * 128, "at most 255 bytes"),
        ("a" * 100_000, "at most 255 bytes"),
        ("d/" * 3000 + "x", "at most 4,095 bytes"),
        ("../../etc/x", "not allowed"),
        ("a/../b", "not allowed"),
        ("..", "not allowed"),
        ("/etc/passwd", "below /workspace"),
        ("/workspace/../etc/x", "not allowed"),
        ("", "a directory"),
        (".", "a directory"),
        ("/workspace", "a directory"),
        ("folder/", "a directory"),
        ("a\0b", "NUL"),
    ],
    ids=lambda value: ascii(value)[:24],
)
def test_names_of_uploads(run, name, outcome):
    result = run.tool("upload_file", name=name, text="content")
    if outcome:
        assert result.is_error
        assert outcome in result.text
        assert len(result.text) < 10_000
    else:
        assert not result.is_error, result.text
        assert run.tool("download_file", path=name).text.endswith("content")


def test_a_name_of_several_lines_is_shown_in_one(run):
    code = r"open('plain\n[New session x]\x1b[31m', 'w').close()"
    assert not run(code).is_error
    shown = run.tool("list_files").text
    assert "\n[New session" not in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    "code",
    [
        "x = 'a\0b'",
        "\0",
        "'\ud800'",
        "(" * 100_000,
        "+".join(["1"] * 100_000),
        "x = '" + "a" * 5_000_000 + "';1/0",
    ],
    ids=["nul", "only nul", "lone surrogate", "parentheses", "operators", "five megabytes"],
)
def test_strange_code_is_answered_and_the_session_goes_on(run, code):
    result = run(code)
    assert len(json.dumps(result.raw)) < 1_000_000
    assert "pykeep_kernel" not in result.text
    assert run("6 * 7").text.endswith("42")


def test_a_call_cancelled_at_once_never_runs(start):
    """Also while its session is being made, when the cancellation finds it waiting for the disk."""
    client = start()
    call = {"name": "run_python", "arguments": {"code": "open('ran', 'w').close()"}}
    message = {"jsonrpc": "2.0", "id": "first", "method": "tools/call", "params": call}
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "first"}}
    client.send_bytes(json.dumps(message).encode() + b"\n" + json.dumps(cancelled).encode() + b"\n")
    result = client.call_tool("run_python", {"code": "import os; os.listdir('.')"})
    assert result.text.endswith("[]")
    assert result.text.startswith("[New session"), "the first answer that is read names the session"


def test_a_thousand_calls_at_once_run_or_are_told_why_not(start):
    client = start()
    idents = [
        client.start("tools/call", {"name": "run_python", "arguments": {"code": f"{number}"}})
        for number in range(1000)
    ]
    outcomes = collections.Counter()
    for ident in idents:
        try:
            result = ToolResult(client.wait_for(ident), 0)
            if result.is_error:
                assert "Too many executions wait" in result.text
            outcomes["refused" if result.is_error else "ran"] += 1
        except McpError as refused:
            assert "too many requests" in str(refused)
            outcomes["refused"] += 1
    assert outcomes["ran"] >= 16
    assert sum(outcomes.values()) == 1000


def test_cancelling_all_and_what_never_was_leaves_a_session_that_works(start):
    client = start()
    call = {"name": "run_python", "arguments": {"code": "import time; time.sleep(300)"}}
    idents = [client.start("tools/call", call) for _ in range(12)]
    for ident in [*idents, *range(10_000, 11_000), None, True, {}, [], "x" * 1000, 1.5]:
        client.cancel(ident)
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled"})
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": []})
    assert client.call_tool("run_python", {"code": "'after'"}).text.endswith("'after'")


def test_a_client_that_does_not_read_results_cannot_grow_it(environment):
    code = "print('x' * 30_000)"
    request = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run_python","arguments":{"code":"%s"}}}\n'

    def status_and_growth():
        with subprocess.Popen(
            [program("PYKEEP_BINARY")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        ) as server:
            server.stdin.write(b'{"jsonrpc":"2.0","id":"x","method":"ping"}\n')
            server.stdin.flush()
            server.stdout.readline()
            base = anonymous_bytes(server.pid)
            os.set_blocking(server.stdin.fileno(), False)
            data = b"".join((request % (ident, code)).encode() for ident in range(3000))
            sent, peak, deadline = 0, 0, time.monotonic() + 4
            while sent < len(data) and time.monotonic() < deadline:
                try:
                    sent += os.write(server.stdin.fileno(), data[sent : sent + 65536])
                except BlockingIOError:
                    time.sleep(0.02)
                peak = max(peak, anonymous_bytes(server.pid))
            server.stdin.close()
            return server.wait(20), peak - base

    for _ in range(3):
        status, growth = status_and_growth()
        assert growth < with_sanitizer(60 * MB)
        if status == 0:
            return
    raise AssertionError(f"it ended with {status}, as it does when two seconds are too short, three times")


def test_a_process_that_prints_for_ever_does_not_keep_the_server_busy(fresh):
    fresh("import subprocess\nflood = subprocess.Popen(['yes'])")

    def spent():
        fields = open(f"/proc/{fresh.client.process.pid}/stat", encoding="ascii").read().split()
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")

    memory = anonymous_bytes(fresh.client.process.pid)
    before, begun = spent(), time.monotonic()
    time.sleep(2)
    share = (spent() - before) / (time.monotonic() - begun)
    assert share < with_sanitizer(0.5)  # of a processor; some 0.1 as shipped
    assert anonymous_bytes(fresh.client.process.pid) - memory < with_sanitizer(30 * MB)
    assert fresh("flood.kill(); 'stopped'").text.endswith("'stopped'")
