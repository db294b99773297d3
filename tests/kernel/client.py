"""A small server's side of the kernel link: starts a kernel, runs cells, collects what they give."""

import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KERNEL = Path(__file__).resolve().parents[2] / "sandbox/kernel/pykeep_kernel/main.py"
PYTHON = os.environ.get("PYKEEP_TEST_PYTHON") or sys.executable
CACHE = None  # a cache directory for all kernels; conftest.py sets it


class KernelDied(Exception):
    pass


class Result:
    """One cell's outputs in order: ("out", text), ("err", text), ("display", frame), ("error", frame)."""

    def __init__(self):
        self.outputs = []
        self.started = None
        self.done = None
        self.seconds = 0.0

    def _text(self, kind):
        return b"".join(data for what, data in self.outputs if what == kind).decode("utf-8", "replace")

    @property
    def out(self):
        return self._text("out")

    @property
    def err(self):
        return self._text("err")

    @property
    def displays(self):
        return [data for what, data in self.outputs if what == "display"]

    @property
    def images(self):
        return [frame["blobs"][0] for frame in self.displays if frame["blobs"]]

    @property
    def error(self):
        return next((data for what, data in self.outputs if what == "error"), None)

    @property
    def traceback(self):
        return "\n".join(self.error["traceback"]) if self.error else ""

    @property
    def result(self):
        """text/plain of the last expression's value."""
        frames = [frame for frame in self.displays if frame["result"]]
        return frames[-1]["data"].get("text/plain") if frames else None

    @property
    def kinds(self):
        """The order of outputs, for reading: ["image", "out", "image", "result"]."""
        kinds = []
        for what, data in self.outputs:
            if what == "display":
                what = "image" if data["blobs"] else "result" if data["result"] else "display"
            if not kinds or kinds[-1] != what or what not in ("out", "err"):
                kinds.append(what)
        return kinds


class Kernel:
    def __init__(self, python=PYTHON, environment=None, command=None):
        self.workspace = Path(tempfile.mkdtemp(prefix="pykeep-test-"))
        ours, theirs = socket.socketpair()
        out, out_theirs = os.pipe()
        err, err_theirs = os.pipe()
        home = self.workspace / "home"
        home.mkdir()
        settings = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "XDG_CACHE_HOME": CACHE or str(home / ".cache"),
            **(environment or {}),
        }
        null = os.open(os.devnull, os.O_RDONLY)
        targets = [null, out_theirs, err_theirs, theirs.fileno()]

        def descriptors():
            high = [os.dup(fd) for fd in targets]
            for number, fd in enumerate(high):
                os.dup2(fd, number)
            os.closerange(4, 64)

        self.process = subprocess.Popen(
            command or [python, "-I", str(KERNEL)],
            cwd=self.workspace,
            env=settings,
            preexec_fn=descriptors,
            close_fds=False,
        )
        for fd in (null, out_theirs, err_theirs):
            os.close(fd)
        theirs.close()
        self._link = ours
        self._streams = {out: "out", err: "err"}
        self._next = 0
        self.background = []
        self.ready = self.wait_for_frame(90)
        assert self.ready["ev"] == "ready", self.ready

    def send(self, header):
        data = json.dumps(header).encode()
        self._link.sendall(struct.pack("<II", len(data), 0) + data)

    def wait_for_frame(self, timeout=60):
        return self._frame(time.monotonic() + timeout, self.background)[0]

    def start(self, code, **arguments):
        self._next += 1
        self.send({"op": "execute", "id": self._next, "code": code, "can_ask": False, **arguments})
        return self._next

    def run(self, code, timeout=60, answers=(), on_frame=None, **arguments):
        """Runs a cell to its end. `answers`: replies to its input requests."""
        began = time.monotonic()
        cell = self.start(code, **arguments)
        return self.finish(cell, timeout, answers, on_frame, began)

    def finish(self, cell, timeout=60, answers=(), on_frame=None, began=None):
        began = began or time.monotonic()
        answers = list(answers)
        result = Result()
        result.requests = []
        while True:
            header, payload = self._frame(began + timeout, result.outputs)
            assert header["id"] == cell, header
            if on_frame:
                on_frame(header)
            event = header["ev"]
            if event == "started":
                result.started = header
            elif event == "display":
                header["blobs"] = _cut(header["binary"], payload)
                result.outputs.append(("display", header))
            elif event == "error":
                result.outputs.append(("error", header))
            elif event == "input_request":
                result.requests.append(header)
                answer = answers.pop(0) if answers else None
                reply = {"op": "reply", "id": cell}
                self.send(reply if answer is None else {**reply, "value": answer})
            elif event == "done":
                result.done = header
                result.seconds = time.monotonic() - began
                return result
            else:
                raise AssertionError(header)

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    @property
    def pid(self):
        return self.process.pid

    def cpu(self):
        """Seconds of processor that the kernel has used: what else the machine does hardly changes them."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def wait_for_output(self, text, timeout=30):
        """Reads the streams until `text` has come."""
        seen = b""
        deadline = time.monotonic() + timeout
        while text.encode() not in seen:
            pieces = []
            self._drain(max(0, deadline - time.monotonic()), pieces)
            assert time.monotonic() < deadline, seen
            seen += b"".join(data for _, data in pieces)
        return seen.decode()

    def close(self):
        self._link.close()
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for fd in self._streams:
            os.close(fd)
        shutil.rmtree(self.workspace, ignore_errors=True)

    def _drain(self, timeout, pieces):
        """Waits for something, takes all that the pipes hold; whether a frame was there before."""
        ready, _, _ = select.select([self._link, *self._streams], [], [], timeout)
        while True:
            readable, _, _ = select.select(list(self._streams), [], [], 0)
            taken = [(self._streams[fd], os.read(fd, 1 << 18)) for fd in readable]
            for piece in taken:
                add(pieces, piece)
            if not any(data for _, data in taken):
                return self._link in ready

    def _frame(self, deadline, pieces):
        # The order of docs/kernel-link.md: see that a frame is there, empty the pipes, read it.
        while not self._drain(max(0.0, deadline - time.monotonic()), pieces):
            if time.monotonic() >= deadline:
                self.process.kill()
                raise TimeoutError(f"no end; so far: {pieces[-5:]}")
        header_size, payload_size = struct.unpack("<II", self._exactly(8, deadline, pieces))
        assert header_size <= 1 << 20, header_size
        assert payload_size <= 32 << 20, payload_size
        header = json.loads(self._exactly(header_size, deadline, pieces))
        return header, self._exactly(payload_size, deadline, pieces)

    def _exactly(self, size, deadline, pieces):
        data = b""
        self._link.settimeout(max(0.1, deadline - time.monotonic()))
        while len(data) < size:
            try:
                part = self._link.recv(size - len(data))
            except ConnectionResetError:
                part = b""
            if not part:
                self.process.wait(30)
                self._drain(0, pieces)
                raise KernelDied(self.process.returncode, pieces)
            data += part
        return data


def add(pieces, piece):
    """How a stream was cut up on its way says nothing: what is adjacent becomes one piece."""
    kind, data = piece
    if data and pieces and pieces[-1][0] == kind:
        pieces[-1] = (kind, pieces[-1][1] + data)
    elif data:
        pieces.append(piece)


def _cut(binary, payload):
    blobs = []
    for entry in binary:
        blobs.append((entry["mime"], payload[: entry["length"]]))
        payload = payload[entry["length"] :]
    assert not payload
    return blobs
