"""`pykeep.client` when things go wrong: what cannot be sent, programs that are none, forks, Ctrl-C."""

import math
import os
import pathlib
import signal
import sys
import threading
import time

import pytest
from conftest import environment_in, program

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "packaging/python/src"))

from pykeep.client import PykeepError, Python  # noqa: E402

LARGE = "from IPython.display import HTML, display\nx = '{}'\ndisplay(HTML('z' * 2_000_000))"


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    program("PYKEEP_BINARY")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment_in(tmp_path_factory.mktemp("client")).items():
            patch.setenv(name, value)
        with Python("--session", "main") as python:
            python.run("a = 5")
            yield python


def test_what_cannot_be_sent_is_an_error_and_not_a_wait(python):
    for timeout in (math.inf, math.nan):
        with pytest.raises(ValueError, match="JSON"):
            python.run("1", timeout=timeout)
    with pytest.raises(PykeepError, match="longer than"):
        python.run("#" * (33 << 20))
    assert python.run("a").text == "5"


@pytest.mark.parametrize("says", ["echo hello", "echo []", "echo 5", "cat", "exit 3", ""])
def test_a_program_that_is_no_pykeep(says, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.write_text(f"#!/bin/sh\n{says}\n")
    monkeypatch.setenv("PYKEEP_BINARY", str(other))
    with pytest.raises(PykeepError, match="does not start"):  # it is not executable yet
        Python().run("1")
    other.chmod(0o755)
    if says == "cat":  # it says what it is told
        other.write_text("#!/bin/sh\nread line; echo '{\"id\": 1'\nexec sleep 100\n")
    with pytest.raises(PykeepError, match="no pykeep|ended with status"):
        Python().run("1")


def test_a_fork_has_a_server_of_its_own_and_does_not_hold_up_the_end(python):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, python.run("'a' in globals()").text.encode())
            signal.pause()
        finally:
            os._exit(1)
    assert os.read(reading, 1000)
    assert python.run("a").text == "5"
    thread = threading.Thread(target=python.close)
    begun = time.monotonic()
    thread.start()
    thread.join(20)
    held_up, taken = thread.is_alive(), time.monotonic() - begun
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert not held_up
    if taken > 1.2:  # on a machine that stalls there was no time for keeping variables
        python.run("a = 5")
    assert python.run("a").text.endswith("5")


def test_an_interrupt_at_any_moment_leaves_a_client_that_works(python):
    for i in range(12):
        timer = threading.Timer(0.01 * i, os.kill, [os.getpid(), signal.SIGINT])
        code = LARGE.format("y" * (2_000_000 if i % 2 else 1))
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            python.run(code)
            signal.pause()
        assert python.run("a").text.endswith("5")  # maybe after a warning of what was interrupted
