"""The link of a kernel that has a relay (docs/guest-relay.md): connects, and connects again."""

import json
import os
import select
import socket
import struct

_OFTEN = 0.05  # seconds between two attempts
_SELDOM = 0.5  # after half a minute of them: nobody seems to be looking after this guest
_MANY = 600
_encode = json.dumps
_select = select.select
_Socket = socket.socket


class Relay:
    """Where descriptor 3 leads to, and what a relay that finds this kernel has to know of it."""

    def __init__(self, path, fd):
        self._path = path
        self._fd = fd
        self._received = 0  # frames, in the kernel's life
        self._busy = True
        self._question = None

    def reach(self):
        """Makes descriptor 3 a new connection, however long that takes, and introduces itself."""
        while True:
            self._connect()
            hello = _encode({"ev": "hello", "received": self._received, "busy": self._busy}).encode()
            data = struct.pack("<II", len(hello), 0) + hello + (self._question or b"")
            try:
                while data:
                    data = data[os.write(self._fd, data) :]
                return
            except ConnectionError:
                continue

    def _connect(self):
        attempts = 0
        while True:
            end = _Socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                end.connect(self._path)
                break
            except OSError:
                end.close()
            attempts += 1
            _select([], [], [], _OFTEN if attempts < _MANY else _SELDOM)
        fd = end.detach()
        if fd != self._fd:
            os.dup2(fd, self._fd, inheritable=False)
            os.close(fd)

    def sent(self, header, frame):
        if header["ev"] in ("ready", "done"):
            self._busy = False
        self._question = frame if header["ev"] == "input_request" else None

    def received(self, header):
        self._received += 1
        if header.get("op") in ("execute", "resumed"):
            self._busy = True
        self._question = None
