"""`start`: makes sure of a relay and a kernel (docs/guest-relay.md, "start")."""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time

from pykeep_guest import call, kernel, relay

_ANSWER_SECONDS = 5
_UP_SECONDS = 20
_END_SECONDS = 5
_RESEED = 0x5207  # RNDRESEEDCRNG
_LOOK = """
import json, sys
from importlib import metadata
try: version = metadata.version("ipython")
except metadata.PackageNotFoundError: version = None
print(json.dumps([list(sys.version_info[:3]), version, sys.executable]))
"""
_PIP = """
import importlib.util, os, sysconfig
if importlib.util.find_spec("pip"):
    managed = os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))
    print("--break-system-packages" if managed else "-q")
"""


class Problem(Exception):
    def __init__(self, problem, message, remedy=None):
        self.report = {"ok": False, "problem": problem, "message": message, "remedy": remedy}


def run(given):
    try:
        report = {"ok": True, **_start(given)}
    except Problem as problem:
        report = problem.report
    except OSError as error:
        report = {"ok": False, "problem": "failed", "message": str(error), "remedy": None}
    print(json.dumps(report, separators=(",", ":")))
    return 0 if report["ok"] else 1


def _start(given):
    given.run = os.path.abspath(given.run)
    given.workspace = os.path.abspath(given.workspace)
    os.makedirs(given.run, exist_ok=True)
    os.chmod(given.run, 0o700)
    os.makedirs(given.workspace, exist_ok=True)
    with open(os.path.join(given.run, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the second of two finds what the first one has made
        secret = relay.read_secret(given.run)
        if secret is None:
            raise Problem("no_secret", f"{given.run}/secret has to be 64 hexadecimal digits")
        os.chmod(os.path.join(given.run, "secret"), 0o600)
        _stir(secret)
        state = _ask(given.run, "POST", "/renew")
        if state is not None and state["kernel"]["exit"] is None:
            return state
        _end_relay(given.run, answers=state is not None)
        if not kernel.read_json(os.path.join(given.run, "kernel.json")):
            given.python = _look_at_python(given)
        return _start_relay(given)


def _stir(secret):
    """Guests from one snapshot draw the same random numbers until something of their own comes in."""
    with contextlib.suppress(OSError), open("/dev/urandom", "wb", buffering=0) as generator:
        generator.write(hashlib.sha256(b"stir" + secret.encode()).digest())
        fcntl.ioctl(generator, _RESEED)


def _ask(run, method, path):
    try:
        status, body = call.request(run, method, path, timeout=_ANSWER_SECONDS)
        return json.loads(body) if status == 200 else None
    except (OSError, ValueError, call.Broken):
        return None


def _end_relay(run, answers):
    if answers:
        _ask(run, "POST", "/end")
    record = kernel.read_json(os.path.join(run, "relay.json"))
    pid, began = record.get("pid"), record.get("started")
    until = time.monotonic() + (_END_SECONDS if answers else 0)
    while began is not None and kernel.started(pid) == began:
        if time.monotonic() >= until:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _look_at_python(given):
    python = shutil.which(given.python)
    if python is None:
        raise Problem("no_python", f"there is no {given.python} in {os.environ.get('PATH')}")
    look = subprocess.run([python, "-I", "-c", _LOOK], capture_output=True, text=True)
    if look.returncode:
        raise Problem("no_python", f"{python} does not run: {look.stderr[-500:].strip()}")
    version, ipython, _ = json.loads(look.stdout.splitlines()[-1])
    readable = ".".join(map(str, version))
    if tuple(version) < (3, 9):
        raise Problem("old_python", f"{python} is Python {readable}; 3.9 or newer is needed")
    if ipython is None or tuple(map(int, re.findall(r"\d+", ipython)[:2])) < (8, 5):
        found = f"only IPython {ipython}" if ipython else "no IPython"
        option = subprocess.run([python, "-I", "-c", _PIP], capture_output=True, text=True).stdout.strip()
        remedy = f"{python} -m pip install {option} 'ipython>=8.5'" if option else None
        raise Problem("no_ipython", f"{python} (Python {readable}) has {found}; 8.5 is needed", remedy)
    kernel.write_json(os.path.join(given.run, "versions.json"), {"python": readable, "ipython": ipython})
    return python


def _start_relay(given):
    main = os.path.join(os.path.dirname(os.path.abspath(__file__)), "main.py")
    port = given.port or kernel.read_json(os.path.join(given.run, "relay.json")).get("port", 0)
    log = os.path.join(given.run, "relay.log")
    ready, theirs = os.pipe()
    with open(log, "ab") as output, open(ready, "rb") as ready:
        os.truncate(log, 0)
        command = [sys.executable or "python3", "-I", main, "--run", given.run, "relay"]
        command += ["--port", str(port), "--python", given.python, "--workspace", given.workspace]
        started = subprocess.Popen(
            [*command, "--ready", str(theirs)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            start_new_session=True,
            pass_fds=[theirs],
        )
        os.close(theirs)
        select.select([ready], [], [], _UP_SECONDS)
        os.set_blocking(ready.fileno(), False)
        up = ready.read(1)
    state = _ask(given.run, "GET", "/state") if up else None
    if not state:
        with contextlib.suppress(ProcessLookupError):
            started.kill()
        with open(log, errors="replace") as words:
            raise Problem("failed", f"the relay did not start: {words.read()[-2000:].strip()}")
    return state
