#!/usr/bin/env python3
"""run.py [NAME...]: runs the tests of the examples (all of them), each with the packages of its lockfile.

`./dev examples` calls it, after installing those; so does `./dev test`, one example at a time. An
example is a folder with a `test.py` or a `test.mjs` that exits with 0 when the example did what its
README says. No test needs the network, a model or a key. The server that it starts is PYKEEP_BINARY,
else build/release/pykeep, by a script that keeps sessions in a directory deleted afterwards.

The last line is "N passed, N failed"; the status is 1 when something failed, and 77 (ctest's
"skipped") when nothing could be run.
"""

import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
BUILD = EXAMPLES.parent / "build"
NODE = BUILD / "clients/node_modules/node/bin/node"  # as tests/clients asks for
LIMIT = 450  # seconds for one example; with sanitizers, on a busy machine

PASSED_ON = ("PYKEEP_", "ASAN_", "UBSAN_", "TSAN_")

# The frameworks would report to their makers, ask for new versions or wait for the network.
QUIET = {
    "ANONYMIZED_TELEMETRY": "false",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_TRACKING": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "NO_UPDATE_NOTIFIER": "1",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
    "PYTHONUNBUFFERED": "1",
}


class NotInstalled(Exception):
    pass


SKIPPED = 77  # the status of a test that could not run; what it printed last says why


def environment_of(lockfile):
    """Where ./dev installs what a lockfile asks for: two examples with the same one share it."""
    directory = BUILD / "examples" / hashlib.sha256(lockfile.read_bytes()).hexdigest()[:12]
    if not (directory / "complete").exists():
        raise NotInstalled(
            f"what {lockfile.relative_to(EXAMPLES.parent)} asks for is not installed (./dev examples)"
        )
    return directory


def command_of(example, scratch):
    """The test's command, and the directory to run it in."""
    if (example / "test.py").exists():
        python = environment_of(example / "requirements.lock") / "bin/python"
        return [python, "test.py"], example
    modules = environment_of(example / "package-lock.json") / "node_modules"
    if not NODE.exists():
        raise NotInstalled(f"no {NODE} (./dev examples)")
    copy = scratch / example.name  # modules are looked for beside the script
    shutil.copytree(example, copy, ignore=shutil.ignore_patterns("node_modules"))
    (copy / "node_modules").symlink_to(modules)
    return [NODE, "test.mjs"], copy


def server(scratch):
    """A script in place of the server: most clients do not pass the environment on to it."""
    binary = os.environ.get("PYKEEP_BINARY") or str(BUILD / "release/pykeep")
    kept = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    kept["PYKEEP_STATE_DIR"] = str(scratch / "state")
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in kept.items())
    script = scratch / "bin/pykeep"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\n{exports}exec {shlex.quote(binary)} "$@"\n')
    script.chmod(0o755)
    return script


def run(example):
    """How the example's test ended: None, or what went wrong."""
    if not os.environ.get("PYKEEP_TEMPLATE"):
        raise NotInstalled(
            "PYKEEP_TEMPLATE names no Python environment for sandboxes (./dev examples builds one)"
        )
    with tempfile.TemporaryDirectory(prefix=f"pykeep-{example.name}-") as scratch:
        scratch = Path(scratch)
        command, directory = command_of(example, scratch)
        binary = server(scratch)
        environment = {
            **os.environ,
            **QUIET,
            "PYKEEP_BINARY": str(binary),
            "PATH": f"{binary.parent}:{os.environ['PATH']}",
            "HOME": str(scratch / "home"),  # some keep settings and databases there
        }
        (scratch / "home").mkdir()
        test = subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            said, _ = test.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(test.pid, signal.SIGKILL)
            return test.communicate()[0] + f"\nnot done after {LIMIT} s"
        if test.returncode == SKIPPED:
            raise NotInstalled(said.strip().rsplit("\n", 1)[-1].removeprefix("skipped: "))
        if test.returncode:
            return f"{said}\nstatus {test.returncode}"
        print(said, end="")
        return None


def main():
    names = sys.argv[1:] or sorted(test.parent.name for test in EXAMPLES.glob("*/test.*"))
    passed, failed, skipped = 0, 0, 0
    for name in names:
        began = time.monotonic()
        print(f"== {name}", flush=True)
        try:
            wrong = run(EXAMPLES / name)
        except NotInstalled as reason:
            print(f"skipped: {reason}")
            skipped += 1
            continue
        if wrong:
            print(f"{wrong}\nfailed: {name}")
            failed += 1
        else:
            print(f"passed: {name}, {time.monotonic() - began:.1f} s")
            passed += 1
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0 if passed else 77


if __name__ == "__main__":
    sys.exit(main())
