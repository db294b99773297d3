"""What is in a guest's memory, carried over to another guest by pykeep's own images (sandbox/image).

A VM's snapshot holds everything. Here it holds each process that was started as `python3` in the guest, but
not one that listens on a socket, and no connection between two of them.
"""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from guest import GuestError
from guest_root import LOADER

LIMIT = 60  # seconds, for one process


@dataclass
class Image:
    path: Path
    pid: int  # in the guest
    threads: int


class Memory:
    def __init__(self, fake, image_tool):
        self.fake, self.image_tool = fake, image_tool

    async def copy_disk(self, disk, to):
        """`disk`: a guest's directory, or a snapshot's."""
        to.mkdir(parents=True, exist_ok=True)
        for name in ("root", "local"):
            await self.command("cp", "-a", "--reflink=auto", str(disk / name), str(to / name))

    async def command(self, *words):
        process = await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            output, errors = await asyncio.wait_for(process.communicate(), LIMIT)
        except TimeoutError:
            process.kill()
            raise GuestError(f"{words[0]} took longer than {LIMIT} s") from None
        if process.returncode != 0:
            raise GuestError(f"{words[0]}: {(errors or output).decode(errors='replace').strip()}")
        return output

    async def tool(self, *words):
        return json.loads(await self.command(self.image_tool, *map(str, words)))

    def booted(self, guest):
        """The host's numbers of the processes that the loader started, by their numbers in the guest."""
        if not self.fake.python.loader:
            return {}
        loader = os.stat(self.fake.python.loader)
        found = {}
        for pid in guest.processes():
            try:
                program = os.stat(f"/proc/{pid}/exe")
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            if (program.st_dev, program.st_ino) == (loader.st_dev, loader.st_ino):
                found[int(status.split("NSpid:")[1].split("\n")[0].split()[-1])] = pid
        return dict(sorted(found.items()))

    async def freeze(self, guest, directory):
        """Images of its Python processes, which go on."""
        shutil.rmtree(directory, ignore_errors=True)  # of an attempt that failed
        directory.mkdir(parents=True)
        images = []
        for pid, number in self.booted(guest).items():
            path = directory / f"memory-{pid}"
            try:
                if listens(number):
                    continue
                await self.tool("freeze", number, path, "busy", "lost", "copied=")
                images.append(Image(path, pid, (await self.tool("inspect", path))["threads"]))
            except GuestError as error:
                self.fake.counters.events["processes_not_carried"] += 1
                print(f"process {pid} is not carried: {error}", file=sys.stderr, flush=True)
        return images

    async def thaw(self, guest, image):
        """Nothing else may be started in the guest meanwhile."""
        descriptor = os.open(image.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            message = {"thaw": [LOADER, "thaw"], "pid": image.pid}
            started = await guest.ask(message, [guest.log.fileno(), descriptor])
        finally:
            os.close(descriptor)
        if started["pid"] != image.pid:
            raise GuestError(f"process {image.pid} came back as {started['pid']}")
        end = time.monotonic() + LIMIT
        while not self.goes_on(guest, image):
            if time.monotonic() > end:
                raise GuestError(f"process {image.pid} did not come back within {LIMIT} s")
            await asyncio.sleep(0.002)

    def goes_on(self, guest, image):
        number = self.booted(guest).get(image.pid)
        if number is None:
            said = (guest.directory / "log").read_text(errors="replace")[-1000:]
            if image.pid in guest.ended or not guest.alive:
                raise GuestError(f"process {image.pid} did not come back: {said}")
            return False
        try:
            name = Path(f"/proc/{number}/comm").read_text().strip()
            return name != Path(LOADER).name and len(os.listdir(f"/proc/{number}/task")) >= image.threads
        except OSError:
            return False


def listens(number):
    """Whether a process has a socket that others connect to."""
    waiting = set()
    for name, state, inode in (("tcp", 3, 9), ("tcp6", 3, 9), ("unix", 3, 6)):
        for line in lines(f"/proc/{number}/net/{name}")[1:]:
            words = line.split()
            if words[state] in ("0A", "00010000"):  # TCP_LISTEN, __SO_ACCEPTCON
                waiting.add(f"socket:[{words[inode]}]")
    with contextlib.suppress(FileNotFoundError):
        return any(target(entry.path) in waiting for entry in os.scandir(f"/proc/{number}/fd"))
    return False


def lines(path):
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def target(link):
    try:
        return os.readlink(link)
    except OSError:
        return None
