"""A guest from outside: one bubblewrap, and the link to its process 1 (guest_init.py).

Its network is its own: what listens in it is reached by connect(), from nowhere else. It ends with stop(),
and with this process, however that ends.
"""

import asyncio
import itertools
import json
import os
import signal
import socket
from pathlib import Path

import guest_root

START_LIMIT = 20  # seconds
LONGEST_LINE = 256 << 20  # bytes: a kernel's answer is one


class GuestError(Exception):
    """What guest_init.py said, or that it is gone."""


class Process:
    """A program in the guest. `status`: as waitpid has it, once it has ended."""

    def __init__(self, guest, pid, stdout, stderr, stdin, pipes):
        self.guest, self.pid, self.pipes = guest, pid, pipes
        self.stdout, self.stderr, self.stdin = stdout, stderr, stdin
        self.status = asyncio.get_running_loop().create_future()
        if pid in guest.ended:
            self.status.set_result(guest.ended.pop(pid))
        else:
            guest.exits[pid] = self.status

    async def exit_code(self):
        """None: it was killed and no status is known (the guest is gone)."""
        status = await asyncio.shield(self.status)
        if status is None:
            return None
        return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def kill(self, number=signal.SIGTERM):
        if not self.status.done():
            self.guest.send({"kill": self.pid, "signal": int(number)})

    def end(self, number):
        """For a client that is gone: what it still says is read by nobody."""
        if self.guest.alive:
            self.kill(number)
        self.close()

    def close(self):
        """Our ends of its pipes."""
        for pipe in self.pipes:
            pipe.close()


class Guest:
    def __init__(self, directory, python, with_packages=True):
        self.directory, self.python, self.with_packages = directory, python, with_packages
        self.init = 0  # process 1, in the host's numbers
        self.bwrap = self.log = None
        self.answers, self.exits = {}, {}
        self.ended = {}  # number -> status, of those that nobody waits for (yet)
        self.ids = itertools.count(1)
        self.alive = False

    # ---- its beginning and end ----

    async def start(self):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        status_read, status_write = os.pipe()
        words = guest_root.command(
            self.directory, self.python, theirs.fileno(), status_write, self.with_packages
        )
        self.log = open(self.directory / "log", "ab")
        self.bwrap = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            pass_fds=[theirs.fileno(), status_write],
        )
        theirs.close()
        os.close(status_write)
        self.link = ours
        ours.setblocking(False)
        self.alive = True
        ready = self.answers["ready"] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(ours, self.receive)
        try:
            await asyncio.wait_for(ready, START_LIMIT)
        except (GuestError, asyncio.TimeoutError):
            await self.stop()
            raise GuestError(
                "the guest did not start: " + (self.directory / "log").read_text()[-2000:]
            ) from None
        finally:
            first = os.read(status_read, 4096)
            os.close(status_read)
        self.init = json.loads(first.splitlines()[0])["child-pid"]

    async def stop(self):
        """Afterwards nothing of it runs."""
        self.gone()
        if self.init:
            try:
                os.kill(self.init, signal.SIGKILL)
            except ProcessLookupError:
                pass
        elif self.bwrap and self.bwrap.returncode is None:
            self.bwrap.kill()
        if self.bwrap:
            await self.bwrap.wait()
        if self.log:
            self.log.close()

    def gone(self):
        if not self.alive:
            return
        self.alive = False
        asyncio.get_running_loop().remove_reader(self.link)
        self.link.close()
        for answer in self.answers.values():
            if not answer.done():
                answer.set_exception(GuestError("the guest is gone"))
        for status in self.exits.values():
            if not status.done():
                status.set_result(None)

    # ---- the link ----

    def send(self, message, descriptors=()):
        if not self.alive:
            raise GuestError("the guest is gone")
        data = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
        try:
            socket.send_fds(self.link, [data], list(descriptors))
        except OSError as error:
            raise GuestError(os.strerror(error.errno).lower()) from None

    def receive(self):
        try:
            data, descriptors, _, _ = socket.recv_fds(self.link, 1 << 20, 4)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            return self.gone()
        message = json.loads(data)
        if "ended" in message:
            status = self.exits.pop(message["ended"], None)
            if status is None:
                self.ended[message["ended"]] = message["status"]
            elif not status.done():
                status.set_result(message["status"])
            return None
        answer = self.answers.pop("ready" if "ready" in message else message["id"], None)
        if answer is None or answer.done():
            for fd in descriptors:
                os.close(fd)
        elif "error" in message:
            answer.set_exception(GuestError(message["error"]))
        else:
            message["descriptors"] = descriptors
            answer.set_result(message)

    async def ask(self, message, descriptors=()):
        number = next(self.ids)
        answer = self.answers[number] = asyncio.get_running_loop().create_future()
        try:
            self.send(message | {"id": number}, descriptors)
        except GuestError:
            del self.answers[number]
            raise
        return await answer

    # ---- what can be done in it ----

    async def run(self, words, cwd="/root", stdin=False):
        """Starts a program as sshd would, with pipes as its stdout and stderr (and stdin, if asked)."""
        out, error = os.pipe(), os.pipe()
        give = os.pipe() if stdin else (os.open("/dev/null", os.O_RDONLY), None)
        try:
            message = {"run": words, "env": guest_root.ENVIRONMENT, "cwd": cwd}
            started = await self.ask(message, [give[0], out[1], error[1]])
        except GuestError:
            for fd in filter(None, (out[0], error[0], give[1])):
                os.close(fd)
            raise
        finally:
            for fd in (give[0], out[1], error[1]):
                os.close(fd)
        (stdout, first), (stderr, second) = await reader(out[0]), await reader(error[0])
        writer = await feeder(give[1]) if stdin else None
        pipes = [first, second, *([writer] if writer else [])]
        return Process(self, started["pid"], stdout, stderr, writer, pipes)

    async def shell(self, command, cwd="/root"):
        return await self.run(["/bin/bash", "-c", command], cwd)

    async def connect(self, port):
        """A socket connected to what listens on the guest's loopback; GuestError with the reason."""
        answer = await self.ask({"connect": port})
        return socket.socket(fileno=answer["descriptors"][0])

    async def listening(self):
        return (await self.ask({"listening": True}))["ports"]

    def processes(self):
        """The host's numbers of everything in the guest but its process 1."""
        found, open_ = [], [self.init]
        while open_:
            pid = open_.pop()
            try:
                for thread in Path(f"/proc/{pid}/task").iterdir():
                    open_ += map(int, (thread / "children").read_text().split())
            except OSError:
                continue
            if pid != self.init:
                found.append(pid)
        return found

    def signal_all(self, number):
        for pid in self.processes():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass


async def reader(fd):
    stream = asyncio.StreamReader(LONGEST_LINE)
    pipe = os.fdopen(fd, "rb", 0)
    protocol = asyncio.StreamReaderProtocol(stream)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
    return stream, transport


async def feeder(fd):
    loop = asyncio.get_running_loop()
    pipe = os.fdopen(fd, "wb", 0)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipe)
    return asyncio.StreamWriter(transport, protocol, None, loop)
