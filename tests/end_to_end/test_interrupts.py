"""Stopping what runs, and saying truthfully what is left. (peers 3.4)"""

import time

import pytest
from conftest import at_leisure, best_of_three

STUBBORN = """
import time
print('ignoring')
while True:
    try: time.sleep(1)
    except BaseException: pass
"""
KILLED = (
    "did not stop when interrupted: the kernel was killed. Variables are lost; files in /workspace "
    "are kept; the next call starts a new kernel]"
)


def until_running(run, ident):
    time.sleep(0.5)
    assert not run.client.answered(ident)


def test_what_ignores_interrupts_is_killed(fresh):  # (a)
    results = []

    def seconds():
        fresh("x = 1; open('kept.txt', 'w').write('here')")
        result = fresh(STUBBORN, timeout=2)
        assert result.is_error
        assert result.text.startswith("ignoring\n[timed out after 2.0 s and " + KILLED)
        results.append(result)
        return result.seconds

    best_of_three(6, seconds)
    after = fresh("'x' in globals(), open('kept.txt').read()")
    assert "A new kernel was started: the last one did not stop when interrupted" in after.text
    assert after.text.endswith("(False, 'here')")
    assert after.execution["generation"] == results[-1].execution["generation"] + 1


@pytest.mark.needs("numpy")
def test_a_cancelled_call_frees_the_kernel_also_in_c_code(start):  # (b)
    client = start("--memory", "4GiB")
    code = "import numpy as np; np.linalg.svd(np.random.rand(6000, 6000))"

    def seconds():
        ident = client.start("tools/call", {"name": "run_python", "arguments": {"code": code}})
        time.sleep(3)
        assert not client.answered(ident)
        client.cancel(ident)
        result = client.call_tool("run_python", {"code": "1 + 1"})
        assert result.text.endswith("2")
        assert not client.answered(ident)  # the protocol wants no answer to what was cancelled
        return result.seconds

    best_of_three(at_leisure(5), seconds)  # of which 3 s are for interrupts; a new kernel comes up, too


def test_cancelled_while_queued_never_starts(run):  # (c)
    first = run.start("import time; time.sleep(3)")
    second = run.start("open('started', 'w').close()")
    time.sleep(0.2)
    run.client.cancel(second)
    run.client.wait_for(first)
    assert run("import os; os.path.exists('started')").text == "False"
    assert not run.client.answered(second)


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time; time.sleep(60)",
        "!trap '' INT; sleep 60",
        "%%bash\ntrap '' INT\nsleep 60",
        "import subprocess; subprocess.run(['sleep', '60'])",
        "import threading; threading.Event().wait()",
        "import asyncio; await asyncio.sleep(60)",
        "import asyncio; asyncio.run(asyncio.sleep(60))",
        "import re; re.match('(a+)+$', 'a' * 60 + 'b')",
        "import multiprocessing as m, time\nwith m.Pool(2) as p: p.map(time.sleep, [60, 60])",
    ],
)
def test_an_interrupt_keeps_variables(run, code):
    told = []

    def seconds():
        run("kept = 7")
        ident = run.start(code)
        until_running(run, ident)
        told.append(run.tool("interrupt_execution"))
        assert run.client.wait_for(ident)["isError"]
        return told[-1].seconds

    best_of_three(3, seconds)
    assert "and was interrupted: variables are kept]" in told[-1].text
    assert run("kept").text == "7"


def test_a_restart_is_told(fresh):
    fresh("x = 1")
    assert "was stopped. Its variables are gone" in fresh.tool("interrupt_execution", restart=True).text
    text = fresh("'x' in globals()").text
    assert text.startswith("[A new kernel was started: the last one was stopped on request.")
    assert text.endswith("False")


def test_a_restart_of_what_does_not_stop_is_told_as_one(fresh):
    ident = fresh.start(STUBBORN)
    until_running(fresh, ident)
    fresh.tool("interrupt_execution", restart=True)
    assert "the last one was stopped on request" in fresh("1").text


def test_nothing_to_interrupt(run):
    assert run.tool("interrupt_execution").text.startswith("Nothing runs in session ")
