"""Frames on descriptor 3: how the kernel and the server talk (docs/kernel-link.md, "Frames")."""

import collections
import contextlib
import fcntl
import json
import os
import select
import struct
import sys
import threading

FD = 3
_SIZES = struct.Struct("<II")
_UNREAD = 0x5411  # SIOCOUTQ: what we sent and the other end has not read yet
_TAKEN_LOOKS = 5000  # with a millisecond between them, in the end
# Bound early: cells that patch or break the json module are not rare.
encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_decode = json.JSONDecoder().decode
_select = select.select


class Link:
    """Sends and receives whole frames; only the process that opened it can."""

    def __init__(self, interrupts, before_send, relay=None):
        self._interrupts = interrupts
        self._before_send = before_send  # flushes what must arrive before a frame
        self._lock = threading.Lock()  # of who sends
        self._reading = threading.Lock()  # of who reads a frame, or exchanges what is descriptor 3
        self._relay = relay
        self._rescued = collections.deque()
        if relay is not None:
            relay.reach()
        self._identity = self._look()
        self.dead = False  # in a forked child: it must never speak
        self._muted = False
        os.set_inheritable(FD, False)

    def _look(self):
        status = os.fstat(FD)
        return status.st_dev, status.st_ino

    def _check(self):
        # A cell may have closed descriptor 3, and the number may now be one of its own files.
        try:
            intact = self._look() == self._identity
        except OSError:
            intact = False
        if not intact:
            os.write(2, b"pykeep: the cell closed descriptor 3, the kernel's own connection\n")
            os._exit(70)

    def reconnect(self):
        """After a thaw: descriptor 3 is another one, and it is ours."""
        self._identity = self._look()
        os.set_inheritable(FD, False)

    @contextlib.contextmanager
    def muted(self):
        """Frames are made in here as ever, and not sent."""
        self._muted = True
        try:
            yield
        finally:
            self._muted = False

    def close_in_child(self):
        self.dead = True
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        try:
            if self._look() == self._identity:
                os.close(FD)
        except OSError:
            pass

    def send(self, header, payload=b"", taken=False):
        """Sends one frame, never torn by an interrupt. Does nothing in a forked child.

        `taken`: returns once the server has read it.
        """
        if self.dead:
            return
        encoded = encode(header).encode("utf-8", "pykeep")
        with self._interrupts.held, self._lock:
            self._before_send()
            self._check()
            frame = _SIZES.pack(len(encoded), len(payload)) + encoded + payload
            while not self._muted and not self._write(frame):
                if self._relay is None:
                    os._exit(0)  # the server is gone, and with it the session
                self._connect_again()
            if self._relay is not None:
                self._relay.sent(header, frame)
            if taken:
                self.wait_until_taken()

    def _write(self, frame):
        data = memoryview(frame)
        try:
            while data:
                data = data[os.write(FD, data) :]
        except ConnectionError:
            return False
        return True

    def wait_until_taken(self):
        """Returns once the server has read all that was sent.

        It empties both pipes before it reads a frame: what is printed from then on can no longer be
        taken for text that came before the frame.
        """
        if self.dead:
            return
        pause = 0.0
        try:
            for _ in range(_TAKEN_LOOKS):
                if not any(fcntl.ioctl(FD, _UNREAD, b"\0\0\0\0")):
                    break
                _select([], [], [], pause)  # time.sleep may be patched
                pause = min(pause + 20e-6, 1e-3)
        except OSError:
            pass  # not a socket that can tell: order is then as good as the server is fast

    def receive(self):
        """The next frame's header, or None at the end. Interruptible until a frame begins."""
        while not self._rescued:
            with self._reading:
                self._check()
                identity = self._identity
            _select([FD], [], [])
            with self._interrupts.held:
                with self._reading:
                    if identity != self._identity:
                        continue  # a thread that sends was the first to see the connection's end
                    frame = self._frame()
                if frame is not None or self._relay is None:
                    return frame
                with self._lock:
                    if identity == self._identity:
                        self._connect_again()
        return self._rescued.popleft()

    def _connect_again(self):
        with self._reading:
            # What the relay sent before it ended is still in the old connection.
            os.set_blocking(FD, False)
            with contextlib.suppress(BlockingIOError):
                while (frame := self._frame()) is not None:
                    self._rescued.append(frame)
            self._relay.reach()
            self._identity = self._look()

    def _frame(self):
        sizes = self._read(_SIZES.size)
        if sizes is None:
            return None
        header_size, payload_size = _SIZES.unpack(sizes)
        header = self._read(header_size)
        payload = self._read(payload_size)
        if header is None or payload is None:
            return None
        frame = _decode(header.decode())
        if self._relay is not None:
            self._relay.received(frame)
        return frame

    def _read(self, size):
        parts = []
        while size:
            try:
                part = os.read(FD, min(size, 1 << 20))
            except ConnectionError:
                return None
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def connect(interrupts, before_send):
    path = os.environ.get("PYKEEP_LINK")
    if path:
        from pykeep_kernel.relay import Relay

        return Link(interrupts, before_send, Relay(path, FD))
    try:
        return Link(interrupts, before_send)
    except OSError:
        sys.exit("pykeep: descriptor 3 is not open: this program is started by the pykeep server")
