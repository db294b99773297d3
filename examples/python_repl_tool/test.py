"""Runs the agent, and tries what programs do with `Python` themselves."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "packaging/python/src"  # of the wheel
EXPECTED = [
    "< 42",
    "< False None",
    "< OSError: [Errno 30] Read-only file system: '/usr/lib/i-was-here'",
    "< [the kernel died: exit code 1",
    "< NameError: name 'secret' is not defined",
    "< (image/png, ",
    "That was all.",
]


def agent():
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OPENAI_API_KEY": "not for the sandbox"}
    command = [sys.executable, "agent.py"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400)
    print(done.stdout)
    lines = iter(done.stdout.splitlines())
    missing = [line for line in EXPECTED if not any(said.startswith(line) for said in lines)]
    assert not done.returncode and not missing, f"missing: {missing}\nstatus {done.returncode}\n{done.stderr}"


def interpreter():
    sys.path.insert(0, str(SOURCE))
    from pykeep.client import PykeepError, Python

    with Python("--session", "kept") as python:
        assert python.run("x = 6 * 7\nx").text.strip().endswith("42")
        slow = python.run("import time\nprint('began', flush=True)\ntime.sleep(60)", timeout=4)
        assert slow.failed and slow.text.startswith("began") and "KeyboardInterrupt" in slow.text, slow
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            python.run("time.sleep(60)")
        except KeyboardInterrupt:
            pass
        assert python.run("x").text.strip().endswith("42")  # kept over the timeout, and over the Ctrl-C
        try:
            python.call("no_such_tool")
        except PykeepError as error:
            assert "no_such_tool" in str(error)
        else:
            raise AssertionError("an unknown tool was called")
    with Python("--session", "kept") as python:
        assert python.run("x").text.strip().endswith("42")  # in another process
        os.kill(python._server.pid, signal.SIGKILL)
        try:
            python.run("x")
        except PykeepError as error:
            assert "status -9" in str(error)
        else:
            raise AssertionError("a result came from a server that was killed")
        assert python.run("1 + 1").text.strip().endswith("2")


agent()
interpreter()
