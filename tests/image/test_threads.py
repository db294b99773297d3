"""Threads are frozen wherever they are, and go on from there."""

import os
import signal
import time

import frozen
import pytest

COMPUTE = """
import hashlib, math, threading, time
stop, wrong, rounds = threading.Event(), [], [0] * 3
def clock(n):
    last = time.monotonic_ns()
    while not stop.is_set():
        now = time.monotonic_ns()
        if now < last: wrong.append('clock')
        last = now; rounds[n] += 1
def floats(n):
    while not stop.is_set():
        x = sum(math.sin(i) ** 2 + math.cos(i) ** 2 for i in range(1000))
        if abs(x - 1000) > 1e-9: wrong.append(x)
        rounds[n] += 1
def hashes(n):
    good = hashlib.sha256(b'x' * 100000).digest()
    while not stop.is_set():
        if hashlib.sha256(b'x' * 100000).digest() != good: wrong.append('hash')
        rounds[n] += 1
threads = [threading.Thread(target=f, args=(n,), name=f.__name__) for n, f in enumerate([clock, floats, hashes])]
[t.start() for t in threads]
ids = [t.native_id for t in threads]
None
"""


def test_computing_threads_at_random_points(process, cycle):
    process.value(COMPUTE)
    for generation in range(8):
        time.sleep(0.01 * (generation % 3))
        before = process.value("rounds")
        process = cycle(process)
        until(lambda process=process, before=before: process.value("rounds") != before)
    assert process.value("wrong, ids == [t.native_id for t in threads]") == "([], True)"
    process.value("stop.set(), [t.join(5) for t in threads]")
    assert process.value("threading.active_count()") == "1"


def test_waiting_threads(process, cycle):
    """Sleeping, in a queue, in a lock, in a poll with time limit; three hundred of them."""
    process.value(
        "import threading, queue, time, select\n"
        "q, lock, woken = queue.Queue(), threading.Lock(), []\n"
        "lock.acquire()\n"
        "def take(): woken.append(q.get())\n"
        "def hold():\n    with lock: woken.append('lock')\n"
        "def sleep(): time.sleep(0.5); woken.append('slept')\n"
        "def poll(): select.poll().poll(500); woken.append('polled')\n"
        "many = [threading.Thread(target=take, daemon=True) for _ in range(300)]\n"
        "rest = [threading.Thread(target=f) for f in (hold, sleep, poll)]\n"
        "[t.start() for t in many + rest]\nNone"
    )
    process = cycle(cycle(process))
    process.value("[q.put(n) for n in range(300)]\nlock.release()\n[t.join(10) for t in many + rest]")
    assert process.value("len(woken), sorted(w for w in woken if type(w) is str)") == (
        "(303, ['lock', 'polled', 'slept'])"
    )


BEGUN = "open('/workspace/begun', 'w').close()\n"


def until(condition):
    end = time.monotonic() + frozen.LIMIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def wait_until_begun(place):
    until((place.workspace / "begun").exists)
    (place.workspace / "begun").unlink()


def test_in_the_middle_of_a_cell(place, process):
    """The cell ends after the thaw; its answer comes over the new link."""
    process.send(
        code=f"import time\n{BEGUN}t = time.monotonic()\ntime.sleep(5)\nround(time.monotonic() - t, 1) >= 5"
    )
    wait_until_begun(place)
    image = place.image()
    with pytest.raises(frozen.Refused, match="busy|in time"):
        process.freeze(image, "limit=100")
    process.freeze(image, "end", "busy")
    with frozen.thaw(place, image) as thawed:
        assert thawed.receive()["value"] == "True"


def test_signals(process, cycle):
    """Handlers, masks, what is pending, timers, the alternate stack: all of it goes on."""
    process.value(
        "import signal, os, faulthandler\nfaulthandler.enable(open('/dev/null', 'w'))\ngot = []\n"
        "signal.signal(signal.SIGUSR1, lambda *a: got.append(a[0]))\n"
        "signal.signal(signal.SIGALRM, lambda *a: got.append(a[0]))\n"
        "signal.signal(signal.SIGTRAP, lambda *a: got.append(a[0]))\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\nsignal.setitimer(signal.ITIMER_REAL, 5)\nNone"
    )
    process = cycle(process)
    assert process.value("got, signal.sigpending()") == "([], {<Signals.SIGUSR1: 10>})"
    process.value("signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])\nos.kill(os.getpid(), 5)")
    process.value("import time\nfor _ in range(300):\n    if 14 not in got: time.sleep(0.1)\nNone")
    assert process.value("sorted(got)") == "[5, 10, 14]"


def test_an_interrupt_after_a_thaw(place, process, cycle):
    process = cycle(process)
    process.send(code=f"import time\n{BEGUN}time.sleep(30)")
    wait_until_begun(place)
    os.kill(process.pid, signal.SIGINT)
    assert "KeyboardInterrupt" in process.receive()["error"]


def test_what_belongs_to_the_process(process, cycle):
    process.value(
        "import os, resource\nos.umask(0o27), os.mkdir('/workspace/here'), os.chdir('/workspace/here')\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (200, resource.getrlimit(7)[1]))\n"
        "os.environ['NEW'] = 'x'\nNone"
    )
    process = cycle(process)
    assert process.value("os.umask(0), os.getcwd(), resource.getrlimit(7)[0], os.environ['NEW']") == (
        "(23, '/workspace/here', 200, 'x')"
    )
    assert process.value("'runner.py' in open('/proc/self/cmdline').read()") == "True"
