"""The kernel's link and its two pipes, read in the order of docs/kernel-link.md."""

import collections
import errno
import fcntl
import functools
import json
import os
import socket
import stat
import struct
import termios

_PIECE = 256 << 10
_MAX_HEADER = (1 << 20) - 256  # as a record it gets a little longer
_MAX_PAYLOAD = 32 << 20
_MAX_QUEUE = 64 << 20
_SIZES = struct.Struct("<II")
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ; fcntl names it from 3.10 on
_GET_PIPE_SIZE = 1032


class Violation(Exception):
    pass


def parse_header(data):
    """A frame's header as an object. Nothing that JSON does not have, however Python likes it."""

    def refuse(constant):
        raise ValueError(constant)

    try:
        header = json.loads(data.decode(), parse_constant=refuse)
    except (ValueError, RecursionError):
        raise Violation("a header that is not JSON") from None
    if not isinstance(header, dict):
        raise Violation("a header that is not an object")
    return header


def cut_frame(data):
    """The sizes of the header and the payload that `data` begins with, or None if it is too short."""
    if len(data) < _SIZES.size:
        return None
    header, payload = _SIZES.unpack_from(data)
    if header > _MAX_HEADER or payload > _MAX_PAYLOAD:
        raise Violation(f"a frame of {header} and {payload} bytes")
    return header, payload


class Pipe:
    def __init__(self, path, name):
        try:
            if not stat.S_ISFIFO(os.lstat(path).st_mode):
                os.unlink(path)
        except FileNotFoundError:
            pass
        if not os.path.exists(path):
            os.mkfifo(path, 0o600)
        self.path = path
        self.name = name
        # For writing too: so there is no end of file while no kernel is there.
        self.fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.fcntl(self.fd, _SET_PIPE_SIZE, _PIECE)
        except OSError:
            pass  # smaller pieces work as well

    def read(self):
        try:
            return os.read(self.fd, _PIECE)
        except BlockingIOError:
            return b""


class Link:
    """Knows bytes, not what they mean: `owner` gets on_text, on_frame, on_hello, on_violation."""

    def __init__(self, run, watch, owner):
        self._watch = watch  # of descriptors: watch(fd, readable's callback, writable's callback)
        self._owner = owner
        self.pipes = [Pipe(os.path.join(run, name), name) for name in ("stdout", "stderr")]
        self.path = os.path.join(run, "kernel.sock")
        if os.path.lexists(self.path):
            os.unlink(self.path)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._listener.bind(self.path)
        self._listener.listen(4)
        watch(self._listener.fileno(), self._accept, None)
        self._connection = None
        self._data = bytearray()
        self._queue = collections.deque()  # (number, bytes) for the kernel
        self._queued = 0
        self._written = 0  # of the first one in the queue
        self.connected = False  # and introduced
        self.sent = None  # frames given to the kernel in its life, those in the queue included
        self._paused = False
        self._broken = False
        self._update()

    # ---- to the kernel

    @property
    def takes_more(self):
        return self._queued < _MAX_QUEUE

    @property
    def delivering(self):
        return bool(self._queue)

    def send(self, frame):
        self.sent += 1
        self._queue.append((self.sent, frame))
        self._queued += len(frame)
        self._write()

    def _write(self):
        try:
            while self.connected and self._queue:
                number, frame = self._queue[0]
                self._written += self._connection.send(memoryview(frame)[self._written :])
                if self._written == len(frame):
                    self._pop()
        except BlockingIOError:
            pass
        except OSError:
            self._disconnect()
        self._update()

    def _pop(self):
        self._queued -= len(self._queue.popleft()[1])
        self._written = 0

    # ---- the connection

    def _accept(self):
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        pid, uid, _ = struct.unpack("iII", credentials)
        if self._broken or uid != os.getuid() or not self._owner.is_kernel(pid):
            connection.close()
            return
        self._disconnect()
        connection.setblocking(False)
        self._connection = connection
        self._peer = pid
        self._update()

    def _disconnect(self):
        if self._connection is None:
            return
        self._watch(self._connection.fileno(), None, None)
        self._connection.close()
        self._connection = None
        self.connected = False
        self._data.clear()
        self._written = 0

    def _introduced(self, hello):
        received = hello.get("received")
        if hello.get("ev") != "hello" or type(received) is not int or received < 0:
            raise Violation("no introduction")
        while self._queue and self._queue[0][0] <= received:
            self._pop()
        if self._queue and self._queue[0][0] != received + 1:
            self._queue.clear()
            self._queued = 0
        self.sent = received + len(self._queue)
        self.connected = True
        self._owner.on_hello(self._peer, bool(hello.get("busy")))
        self._write()

    # ---- from the kernel

    def pause(self, paused):
        """While paused nothing is read: the kernel waits in its writes."""
        if paused != self._paused:
            self._paused = paused
            self._update()

    def _update(self):
        for pipe in self.pipes:
            on_pipe = functools.partial(self._on_pipe, pipe)
            self._watch(pipe.fd, None if self._paused else on_pipe, None)
        if self._connection is not None:
            quiet = self._paused or self._broken
            writing = self.connected and self._queue
            self._watch(
                self._connection.fileno(),
                None if quiet else self._on_link,
                self._write if writing else None,
            )

    def _on_pipe(self, pipe):
        data = pipe.read()
        if data:
            self._owner.on_text(pipe.name, data)
        return len(data)

    def _on_link(self):
        # First how much the link holds, then the pipes, then no more than that from the link: so the
        # pipes are empty of what was written before any of these frames, and a kernel that sees its
        # frame taken knows that what it writes next comes after it.
        connection = self._connection
        waiting = fcntl.ioctl(connection.fileno(), termios.FIONREAD, b"\0\0\0\0")
        size = min(struct.unpack("i", waiting)[0], 4 * _PIECE)
        self.drain()
        try:
            data = connection.recv(max(size, 1))
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno != errno.ECONNRESET:
                raise
            data = b""
        if not data:
            self._disconnect()
            return False
        self._data += data
        try:
            while self._take():
                pass
        except Violation as violation:
            self._broken = True
            self._data.clear()
            self._owner.on_violation(str(violation))
            self._update()
        return not self._broken

    def drain(self):
        """All that the pipes hold by now, even if somebody goes on writing for ever."""
        for pipe in self.pipes:
            left = fcntl.fcntl(pipe.fd, _GET_PIPE_SIZE)
            while left > 0:
                taken = self._on_pipe(pipe)
                if not taken:
                    break
                left -= taken

    def _take(self):
        sizes = cut_frame(self._data)
        if sizes is None or len(self._data) < _SIZES.size + sum(sizes):
            return False
        begin, end = _SIZES.size + sizes[0], _SIZES.size + sum(sizes)
        text = bytes(self._data[_SIZES.size : begin])
        payload = bytes(memoryview(self._data)[begin:end])
        del self._data[:end]
        header = parse_header(text)
        if not self.connected:
            self._introduced(header)
        else:
            self._owner.on_frame(header, text.decode(), payload)
        return True

    def finish(self):
        """The kernel is dead: what it still said."""
        for _ in range(16):
            if self._connection is None or self._broken or not self._on_link():
                break
        self.drain()
        self._disconnect()
        self._queue.clear()
