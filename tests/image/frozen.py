"""Processes in real sandboxes, started, frozen and thawed through the loader.

A stand-in for the server's launcher: bubblewrap with the same namespaces, no capability, the program
with pid 2 and the link on descriptor 3.
"""

import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

TOOL = os.environ.get("PYKEEP_IMAGE_TOOL", "")
PYTHON = os.environ.get("PYKEEP_TEST_PYTHON", "/usr/bin/python3")
RUNNER = Path(__file__).with_name("runner.py")
LIMIT = 60  # seconds, for every wait


class Refused(Exception):
    """What the tool or the loader said."""


def tool(*words):
    done = subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True, timeout=LIMIT * 2)
    if done.returncode not in (0, 1):
        raise AssertionError(f"image-tool {words[0]} crashed: {done.returncode} {done.stderr}")
    result = json.loads(done.stdout)
    if "error" in result:
        raise Refused(result["error"])
    return result


class Place:
    """A directory for images, with the loader in it."""

    def __init__(self):
        self.path = Path(tempfile.mkdtemp(prefix="pykeep-image-"))
        self.loader = self.path / "loader"
        self.workspace = self.path / "workspace"
        self.workspace.mkdir()
        self.count = 0
        tool("loader", self.loader)

    def image(self, name="image"):
        self.count += 1
        return self.path / f"{name}-{self.count}"

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


class Process:
    """A sandbox with one process in it. `link` speaks JSON lines with runner.py."""

    def __init__(self, place, words, descriptors=()):
        ours, theirs = socket.socketpair()
        status_read, status_write = os.pipe()
        python = Path(PYTHON)
        environment = python.parent.parent
        binds = ["/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc/alternatives", "/etc/ld.so.cache"]
        command = ["bwrap", "--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000"]
        command += ["--cap-drop", "ALL", "--new-session", "--die-with-parent", "--clearenv"]
        command += ["--setenv", "PATH", "/usr/bin", "--setenv", "HOME", "/tmp/home"]
        command += ["--setenv", "LANG", "C.UTF-8"]
        command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/tmp/home"]
        for path in binds:
            if os.path.islink(path):
                command += ["--symlink", os.readlink(path), path]
            elif os.path.exists(path):
                command += ["--ro-bind", path, path]
        if not str(environment).startswith("/usr"):
            command += ["--ro-bind", str(environment), str(environment)]
        command += ["--ro-bind", str(RUNNER.parent), "/tests"]
        command += ["--ro-bind", str(RUNNER.parents[2] / "sandbox/kernel"), "/kernel"]
        command += ["--ro-bind", str(place.loader), "/loader"]
        command += ["--bind", str(place.workspace), "/workspace", "--chdir", "/workspace"]
        command += ["--json-status-fd", str(status_write), "--", "/loader", *words]

        # The link becomes 3 in a shell: Python's own start of programs may be using that number.
        place_link = f'exec 3<&{theirs.fileno()} {theirs.fileno()}<&-; exec "$@"'
        self.bwrap = subprocess.Popen(
            ["bash", "-c", place_link, "bash", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[theirs.fileno(), status_write, *descriptors],
        )
        os.close(status_write)
        theirs.close()
        self.link = ours
        self.link.settimeout(LIMIT)
        self.buffer = b""
        self.status = open(status_read)
        line = self.status.readline()
        self.init = json.loads(line)["child-pid"] if line else 0

    @property
    def pid(self):
        """Of the process itself, on the host."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            children = Path(f"/proc/{self.init}/task/{self.init}/children").read_text().split()
            if children:
                return int(children[0])
            time.sleep(0.002)
        raise AssertionError("the sandbox has no process")

    def receive_more(self):
        try:
            data = self.link.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Refused(self.output() + f" (ended with {self.bwrap.returncode})")
        self.buffer += data

    def receive(self):
        while b"\n" not in self.buffer:
            self.receive_more()
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def send(self, **message):
        self.link.sendall(json.dumps(message).encode() + b"\n")

    def run(self, code):
        """Runs code; returns its result's repr and its output."""
        self.send(code=code)
        return self.receive()

    def value(self, code):
        answer = self.run(code)
        assert not answer["error"], answer
        return answer["value"]

    def output(self):
        self.bwrap.wait(LIMIT)
        return self.bwrap.stdout.read().decode(errors="replace")

    def freeze(self, image, *options):
        return tool("freeze", self.pid, image, *options)

    def kill(self):
        if self.bwrap.poll() is None:
            self.bwrap.send_signal(signal.SIGKILL)
        self.bwrap.wait(LIMIT)
        for end in (self.link, self.status, self.bwrap.stdout):
            end.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


class Kernel(Process):
    """The same with pykeep's own kernel, which talks in frames (docs/kernel-link.md)."""

    cells = 0

    def receive(self):
        while True:
            if len(self.buffer) >= 8:
                header, payload = struct.unpack("<II", self.buffer[:8])
                if len(self.buffer) >= 8 + header + payload:
                    frame = json.loads(self.buffer[8 : 8 + header])
                    self.buffer = self.buffer[8 + header + payload :]
                    return frame
            self.receive_more()

    def send(self, **header):
        data = json.dumps(header).encode()
        self.link.sendall(struct.pack("<II", len(data), 0) + data)

    def resume(self, reason="snapshot"):
        """The first thing after a thaw."""
        self.send(op="resumed", reason=reason, environment={})
        assert self.receive()["ev"] == "ready"

    def run(self, code):
        """The result's text, and what was raised."""
        self.cells += 1
        self.send(op="execute", id=self.cells, code=code, can_ask=False)
        value = error = None
        while True:
            frame = self.receive()
            if frame["ev"] == "display":
                value = frame["data"].get("text/plain")
            if frame["ev"] == "error":
                error = f"{frame['name']}: {frame['value']}"
            if frame["ev"] == "done":
                return {"value": value, "error": error}


def boot_kernel(place, *options):
    kernel = Kernel(place, ["boot", PYTHON, "-I", "/kernel/pykeep_kernel/main.py", *options])
    assert kernel.receive()["ev"] == "ready"
    return kernel


def thaw_kernel(place, image, base=None, reason="snapshot", cells=0):
    kernel = thaw(place, image, base, Kernel)
    kernel.cells = cells
    kernel.resume(reason)
    return kernel


def boot(place, *modules):
    process = Process(place, ["boot", PYTHON, "-I", "/tests/runner.py", *modules])
    ready = process.receive()
    assert ready["pid"] == 2, ready
    return process


def thaw(place, image, base=None, kind=Process):
    """Throws Refused with the loader's words when it refuses; only found out at the first answer."""
    descriptors = []
    for path in filter(None, (image, base)):
        with open(path, "rb") as file:  # not as 3, where the link will be
            descriptors.append(fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 20))
    try:
        return kind(place, ["thaw", *map(str, descriptors)], descriptors)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
