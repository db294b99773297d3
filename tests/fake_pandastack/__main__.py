"""python3 tests/fake_pandastack PORT [--defect NAME[=VALUE]]...   (README.md)"""

import argparse
import asyncio
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from guest_root import Python

from app import Fake

PREFIX = "fake-pandastack-"
YOUNG = 60  # seconds


def place():
    """A directory for the guests' disks; those of fakes that were killed go."""
    for old in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        try:
            if time.time() - old.stat().st_mtime < YOUNG:
                continue  # its owner may not have locked it yet
            with open(old / "lock") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(old, ignore_errors=True)
        except OSError:
            pass  # in use
    directory = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = open(directory / "lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return directory, lock


async def main():
    options = argparse.ArgumentParser(prog="fake-pandastack")
    options.add_argument("port", type=int, help="0: one that is free")
    options.add_argument("--defect", action="append", default=[], metavar="NAME[=VALUE]")
    options.add_argument("--until", type=int, metavar="PID", help="end when this process does")
    options = options.parse_args()

    directory, lock = place()
    image_tool = os.environ.get("PYKEEP_IMAGE_TOOL")
    loader = None
    if image_tool:
        loader = directory / "loader"
        subprocess.run([image_tool, "loader", loader], check=True, stdout=subprocess.DEVNULL)
    else:
        print("PYKEEP_IMAGE_TOOL is not set: snapshots hold no memory", file=sys.stderr)
    fake = Fake(directory, Python(os.environ.get("PYKEEP_TEMPLATE"), loader), image_tool)
    for text in options.defect:
        fake.defects.set_text(text)
    port = await fake.serve(options.port)
    print(f"fake pandastack ready on http://127.0.0.1:{port}", flush=True)

    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    if options.until:
        try:
            asyncio.get_running_loop().add_reader(os.pidfd_open(options.until), ended.set)
        except ProcessLookupError:
            ended.set()
    await ended.wait()
    await fake.stop()
    shutil.rmtree(directory, ignore_errors=True)
    lock.close()


asyncio.run(main())
