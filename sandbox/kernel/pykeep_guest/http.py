"""One HTTP/1.1 connection: requests one after the other, answers in full or in pieces."""

import collections
import hmac
import itertools
import json
import socket
import time
import urllib.parse

_MAX_HEAD = 16 << 10
_MAX_BODY = (33 << 20) + 8
_MAX_EARLY = 64 << 10  # of the next request, while an answer is being sent
_HEAD_SECONDS = 10
_STALL_SECONDS = 60
_LINGER_SECONDS = 2
_REASONS = {
    200: "OK",
    204: "No Content",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    411: "Length Required",
    413: "Content Too Large",
    431: "Request Header Fields Too Large",
}


class Refused(Exception):
    def __init__(self, status, message, **fields):
        self.status = status
        self.fields = {"error": message, **fields}


class Request:
    def __init__(self, method, target, headers):
        self.method = method
        self.path, _, query = target.partition("?")
        self.query = dict(urllib.parse.parse_qsl(query))
        self.headers = headers
        self.body = b""
        self.size = 0


def parse_head(data):
    try:
        first, *lines = data.decode("ascii").split("\r\n")
        method, target, version = first.split(" ")
        headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
    except ValueError:
        raise Refused(400, "this is not HTTP") from None
    if version != "HTTP/1.1":
        raise Refused(400, "HTTP/1.1 is wanted")
    request = Request(method, target, headers)
    if "transfer-encoding" in headers:
        raise Refused(411, "a body needs Content-Length")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise Refused(400, "Content-Length is not a number")
    request.size = int(length) if len(length) < 12 else _MAX_BODY + 1
    if request.size > _MAX_BODY:
        raise Refused(413, f"a body has at most {_MAX_BODY} bytes")
    return request


class Connection:
    """`serve(connection, request)` answers by answer(), refuse() or begin(), write()…, finish()."""

    def __init__(self, end, secret, watch, serve, on_close):
        self._end = end
        self._secret = secret  # a function, or None: whoever is here may be
        self._watch = watch
        self._serve = serve
        self._on_close = on_close
        self._data = bytearray()
        self._output = collections.deque()
        self._request = None  # whose body is being read
        self._keep = True
        self._lingering = False
        self.inner = secret is None  # by way of relay.sock
        self.trusted = self.inner
        self.answering = False
        self.open = True
        self.deadline = time.monotonic() + _HEAD_SECONDS
        end.setblocking(False)
        self._update()

    @property
    def idle(self):
        return not self.answering and not self._data

    @property
    def reading_body(self):
        return self._request is not None

    @property
    def unsent(self):
        return bool(self._output)

    # ---- reading

    def _readable(self):
        try:
            data = self._end.recv(256 << 10)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        if self._lingering:
            return
        self._data += data
        if self.answering:
            if len(self._data) > _MAX_EARLY:
                self.close()
            return
        if self._request is not None:
            self.deadline = time.monotonic() + _STALL_SECONDS
        elif self.deadline is None:
            self.deadline = time.monotonic() + _HEAD_SECONDS
        self._advance()

    def _advance(self):
        try:
            while self.open and not self.answering and self._next():
                pass
        except Refused as refusal:
            self._keep = False
            self.answering = True
            self.refuse(refusal)

    def _next(self):
        if self._request is None:
            end = self._data.find(b"\r\n\r\n", 0, _MAX_HEAD)
            if end < 0:
                if len(self._data) > _MAX_HEAD:
                    raise Refused(431, f"a request's head has at most {_MAX_HEAD} bytes")
                return False
            self._begin(bytes(self._data[:end]))
            del self._data[: end + 4]
        if len(self._data) < self._request.size:
            return False
        request, self._request = self._request, None
        request.body = bytes(memoryview(self._data)[: request.size])
        del self._data[: request.size]
        self._keep = request.headers.get("connection", "").lower() != "close"
        self.deadline = None
        self.answering = True
        self._serve(self, request)
        return True

    def _begin(self, head):
        request = parse_head(head)
        if self._secret is not None:
            given = request.headers.get("x-pykeep-secret", "")
            if not hmac.compare_digest(given.encode(), self._secret().encode()):
                self.trusted = False
                raise Refused(403, "X-Pykeep-Secret is missing or wrong")
        self.trusted = True
        self._request = request
        self.deadline = time.monotonic() + _STALL_SECONDS
        if request.headers.get("expect", "").lower() == "100-continue":
            self._put(b"HTTP/1.1 100 Continue\r\n\r\n")

    # ---- answering

    def answer(self, status, value=None):
        body = b"" if value is None else json.dumps(value, separators=(",", ":")).encode() + b"\n"
        self._head(status, "" if status == 204 else f"Content-Length: {len(body)}\r\n")
        self._put(body)
        self._done()

    def refuse(self, refusal):
        self.answer(refusal.status, refusal.fields)

    def begin(self):
        self._head(200, "Transfer-Encoding: chunked\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\n")

    def write(self, *pieces):
        self._put(b"%x\r\n" % sum(map(len, pieces)), *pieces, b"\r\n")

    def finish(self):
        self._put(b"0\r\n\r\n")
        self._done()

    def _head(self, status, more):
        kind = "application/json" if "chunked" not in more else "application/octet-stream"
        close = "" if self._keep else "Connection: close\r\n"
        lines = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\n{more}{close}\r\n"
        self._put(lines.encode())

    def _done(self):
        self.answering = False
        self.deadline = time.monotonic() + _STALL_SECONDS

    def _put(self, *pieces):
        if self.open:
            self._output.extend(memoryview(piece) for piece in pieces if piece)

    def settle(self):
        """Sends what the socket takes, and goes on to the next request once all of it is sent."""
        try:
            while self._output:
                batch = list(itertools.islice(self._output, 64))
                sent = self._end.sendmsg(batch)
                while sent and sent >= len(self._output[0]):
                    sent -= len(self._output.popleft())
                if sent:
                    self._output[0] = self._output[0][sent:]
        except BlockingIOError:
            pass
        except OSError:
            self.close()
        if self.open and not self._output and not self.answering:
            self._next_request()
        self._update()

    def _next_request(self):
        if not self._keep and not self._lingering:
            # Closed at once, with something unread, the peer might never see the answer.
            self._lingering = True
            self.deadline = time.monotonic() + _LINGER_SECONDS
            try:
                self._end.shutdown(socket.SHUT_WR)
            except OSError:
                self.close()
        elif self._keep and self._request is None:
            if self.trusted and not self._data:
                self.deadline = None
            elif self._data:
                self._advance()

    def _update(self):
        if self.open:
            self._watch(self._end.fileno(), self._readable, self.settle if self._output else None)

    def close(self):
        if self.open:
            self.open = False
            self._watch(self._end.fileno(), None, None)
            self._end.close()
            self._output.clear()
            self._data.clear()
            self._on_close(self)


def listen_on_port(port):
    """On the port that is wished for, or another one if that is taken."""
    for wish in (port, 0):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("0.0.0.0", wish))
            listener.listen(32)
            return listener
        except (OSError, OverflowError):
            listener.close()
            if wish == 0:
                raise
