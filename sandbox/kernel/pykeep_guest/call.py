"""`call`: one request over relay.sock, its answer as text (docs/guest-relay.md, "call")."""

import base64
import http.client
import os
import socket
import sys

Broken = http.client.HTTPException
_PIECE = 48 << 10


class _Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("relay", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _open(run, method, path, body, timeout):
    connection = _Connection(os.path.join(run, "relay.sock"), timeout)
    connection.request(method, path, body=body, headers={"Content-Length": str(len(body))})
    return connection.getresponse()


def request(run, method, path, body=b"", timeout=None):
    response = _open(run, method, path, body, timeout)
    return response.status, response.read()


def _body(text):
    if not text.startswith("@"):
        return base64.b64decode(text, validate=True)
    with open(text[1:], "rb") as file:
        data = file.read()
    os.unlink(text[1:])
    return data


def run(given):
    try:
        response = _open(given.run, given.method, given.path, _body(given.body), None)
    except (OSError, ValueError, Broken) as error:
        print(f"0 {error}")
        return 1
    print(response.status, flush=True)
    try:
        while piece := response.read1(_PIECE):
            print(base64.b64encode(piece).decode(), flush=True)
    except (OSError, Broken) as error:
        print(error, file=sys.stderr)
        return 1
    print(".", flush=True)
    return 0
