"""Memory: cells have a limit, and the server does not grow with what they do. (peers 3.6)"""

import time

import pytest
from conftest import Runner, best_of_three
from mcp_client import anonymous_bytes

MB = 1 << 20


def server_memory(run):
    return anonymous_bytes(run.client.process.pid)


def test_too_large_an_object_is_a_memory_error(run, fresh):  # (a)
    fresh("y = 5")
    before = server_memory(run)

    def seconds():
        result = run("a = bytearray(10**11)")
        assert result.is_error and "MemoryError" in result.text
        assert "[the sandbox has 2 GiB of memory, with what variables hold: `del` what" in result.text
        return result.seconds

    best_of_three(2, seconds)
    assert server_memory(run) - before < 5 * MB
    assert fresh("y").text == "5"


def test_after_a_memory_error_there_is_memory_again(run):
    result = run("def grow():\n    held = []\n    while True: held.append(bytearray(50_000_000))\ngrow()")
    assert "MemoryError" in result.text
    assert run("len(bytearray(10**9))").text == "1000000000"


@pytest.mark.needs("pandas", "numpy", "pyarrow")
def test_a_string_column_does_not_take_half_of_the_memory(fresh):
    """Arrow's own allocator would reserve 1 GiB of the 2."""
    fresh("import pandas as pd, numpy as np; pd.DataFrame({'a': ['x']}).a.str.upper()")
    assert fresh("np.empty(190_000_000).nbytes").text == "1520000000"


def test_several_processes_together_reach_the_limit_and_it_is_named(start):
    """Each alone stays below it. Which of them is killed is the system's choice."""
    run = Runner(start("--memory", "256MiB"))
    run("1")
    result = run(
        "import os, time\nfor _ in range(8):\n    if os.fork() == 0:\n"
        "        held = bytearray(b'x' * 40_000_000); time.sleep(60)\nos.wait()"
    )
    assert result.seconds < 30 and "memory limit" in result.text
    assert run("1 + 1").text.startswith("2")  # more may be killed meanwhile


def test_a_gigabyte_of_output_leaves_the_server_as_it_was(run):  # (c)
    run("for i in range(10**5): print('x' * 100)")
    before = server_memory(run)
    ident = run.start("for i in range(10**7): print('x' * 100)", wait=110)
    peak = before
    while not run.client.answered(ident):
        peak = max(peak, server_memory(run))
        time.sleep(0.02)
    text = run.client.wait_for(ident)["content"][0]["text"]
    assert peak - before < 20 * MB
    assert len(text) < 26_000 and "all of it: 1,010,000,000 bytes" in text
