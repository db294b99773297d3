"""The stdio transport as a client's operating system sees it: processes, signals, memory.

Played with the server that has the fixture tools, so that nothing here depends on a sandbox.
"""

import json
import os
import random
import signal
import subprocess
import time

import pytest
from conftest import best_of_three, program
from mcp_client import Client, McpError, anonymous_bytes

MB = 1 << 20
SEED = int(os.environ.get("PYKEEP_SEED", "20261129"))


def run(data: bytes, *, env=None, **options):
    return subprocess.run(
        [program("PYKEEP_TEST_SERVER")], input=data, capture_output=True, timeout=60, env=env, **options
    )


def ping(ident) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": ident, "method": "ping"}).encode() + b"\n"


def test_input_end_ends_the_process_within_two_seconds_whatever_it_does(environment):
    def seconds():
        with Client([program("PYKEEP_TEST_SERVER")], env=environment) as client:
            client.connect()
            client.start("tools/call", {"name": "slow", "arguments": {"ms": 60_000}})
            started = time.monotonic()
            assert client.close() == 0
            return time.monotonic() - started

    best_of_three(2, seconds)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(test_server, number):
    ident = test_server.start("tools/call", {"name": "slow", "arguments": {"ms": 300}})
    test_server.request("ping")
    test_server.process.send_signal(number)
    assert test_server.wait_for(ident)["content"][0]["text"] == "waited 300 ms"
    assert test_server.process.wait(20) == 0


def test_an_empty_environment_will_do():
    done = run(ping(1), env={})
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_nothing_but_messages_on_stdout():
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "break"}}
    done = run(b"garbage\n" + json.dumps(call).encode() + b"\n" + ping(2))
    assert [json.loads(line).get("id") for line in done.stdout.splitlines()] == [None, 1, 2]
    assert b"a defect" in done.stderr


def test_a_full_stderr_does_not_stop_it():
    """Each of these calls is logged; nobody reads stderr, and the pipe is full after a few hundred."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "break"}}
    line = json.dumps(call).encode() + b"\n"
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            [program("PYKEEP_TEST_SERVER")],
            input=line * 3000 + ping(2),
            stdout=subprocess.PIPE,
            stderr=writing,
            timeout=60,
        )
    finally:
        os.close(reading)
        os.close(writing)
    assert json.loads(done.stdout.splitlines()[-1]) == {"jsonrpc": "2.0", "id": 2, "result": {}}


def test_a_client_that_never_reads_cannot_grow_it(environment):
    """Asks for 2 GB of answers."""
    call = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"flood","arguments":{"bytes":500000}}}\n'
    requests = b"".join(call % ident for ident in range(4000))
    with subprocess.Popen(
        [program("PYKEEP_TEST_SERVER")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as server:
        os.set_blocking(server.stdin.fileno(), False)
        sent = stalled = 0
        peak = 0
        while sent < len(requests) and stalled < 20:
            try:
                sent += os.write(server.stdin.fileno(), requests[sent : sent + 65536])
                stalled = 0
            except BlockingIOError:
                stalled += 1
                time.sleep(0.05)
            peak = max(peak, anonymous_bytes(server.pid))
        assert sent < len(requests), "the server read on although its answers were not"
        server.kill()
    # The outbox (8 MiB), an answer for each of 64 requests in flight, and the program itself.
    print("peak", peak // MB, "MB after", sent, "bytes of requests")
    assert peak < 150 * MB


def test_100_000_mutated_lines_leave_it_alive_and_no_larger(test_server):
    chance = random.Random(SEED)
    samples = [
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a\\ud83d\\ude42"}}}',
        b'{"jsonrpc":"2.0","id":"x","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":'
        b'"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
        b'[{"jsonrpc":"2.0","id":2,"method":"ping"}]',
    ]
    alphabet = b'{}[]",:\\u0123456789eE+-.truefalsn \xff\xc3\x00'

    def mutated() -> bytes:
        line = bytearray(chance.choice(samples))
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(line))
            kind = chance.randrange(3)
            if kind == 0:
                line[at] = chance.choice(alphabet)
            elif kind == 1:
                del line[at : at + chance.randrange(1, 8)]
            else:
                line[at:at] = line[chance.randrange(len(line)) :][: chance.randrange(1, 30)]
            if not line:
                line = bytearray(b"{")
        return bytes(line).replace(b"\n", b" ") + b"\n"

    def round_of(count):
        for _ in range(count // 1000):
            test_server.send_bytes(b"".join(mutated() for _ in range(1000)))
            test_server.request("server/discover", {"_meta": modern_meta()})
        return anonymous_bytes(test_server.process.pid)

    def modern_meta():
        return {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }

    warm = round_of(20_000)
    assert round_of(80_000) - warm < 20 * MB


def test_many_calls_at_once_are_answered_or_refused(test_server):
    idents = [test_server.start("tools/call", {"name": "slow", "arguments": {"ms": 200}}) for _ in range(200)]
    outcomes = {"answered": 0, "refused": 0}
    for ident in idents:
        try:
            test_server.wait_for(ident)
            outcomes["answered"] += 1
        except McpError as refused:
            assert refused.code == -32603
            outcomes["refused"] += 1
    assert outcomes["answered"] >= 64
    assert sum(outcomes.values()) == 200
