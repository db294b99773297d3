"""Runs in a guest, with `given` from the server: puts our packages and this guest's secret in place."""

import json
import os
import sys
import time

_MISSING = 42  # the exit code that asks for the packages, too
_CLOCK_OFF = 60  # seconds; some guests wake with the clock of their template


def write(path, text):
    aside = f"{path}.{os.getpid()}"
    with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    os.replace(aside, path)


def set_up(given):
    package = given["package"]
    for name, text in given["files"].items():
        os.makedirs(os.path.dirname(os.path.join(package, name)), exist_ok=True)
        write(os.path.join(package, name), text)
    if not os.path.exists(os.path.join(package, "complete")):
        if not given["files"]:
            return _MISSING
        write(os.path.join(package, "complete"), "")
    if abs(given["time"] - time.time()) > _CLOCK_OFF:
        try:
            time.clock_settime(time.CLOCK_REALTIME, given["time"])
        except OSError:
            pass  # not allowed: then it is as it is
    os.makedirs("/run/pykeep", mode=0o700, exist_ok=True)
    write("/run/pykeep/environment.json", json.dumps(given["environment"]))
    write("/run/pykeep/secret", given["secret"])
    return 0


sys.exit(set_up(given))  # noqa: F821
