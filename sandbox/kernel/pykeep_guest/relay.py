"""The relay itself: one thread, one loop, and what the requests mean (docs/guest-relay.md)."""

import hashlib
import os
import re
import secrets
import select
import socket
import time

from pykeep_guest import http, kernel, link, records
from pykeep_guest.http import Refused

_CONNECTIONS = 32
_ALIVE_SECONDS = 10
_ANSWER_BYTES = 8 << 20  # in one answer; the next request acknowledges them
_GRACE_SECONDS = 10  # for a reader to take what was written when its limit has passed


def read_secret(run):
    try:
        with open(os.path.join(run, "secret")) as file:
            secret = file.read().strip()
    except (OSError, ValueError):
        return None
    return secret if re.fullmatch("[0-9a-f]{64}", secret) else None


class Exchange:
    """One answer that records go into."""

    def __init__(self, connection, after, until, limit):
        now = time.monotonic()
        self.connection = connection
        self.after = after  # the last record that was written into it
        self.until = until
        self.deadline = now + limit
        self.alive_at = now + _ALIVE_SECONDS
        self.written = 0
        connection.deadline = self.deadline + _GRACE_SECONDS

    def write(self, number, record):
        self.after = number
        self.alive_at = time.monotonic() + _ALIVE_SECONDS
        self.written += sum(map(len, record))
        self.connection.write(*record)

    def end(self, why):
        self.connection.write(*records.encode({"seq": self.after, "is": "end", "why": why}))
        self.connection.finish()


class Relay:
    def __init__(self, given):
        self._run = given.run
        self._epoll = select.epoll()
        self._watched = {}  # fd -> (mask, on readable, on writable)
        self._secret = read_secret(given.run)
        self._name = secrets.token_hex(4)
        self._records = records.Records()
        self._connections = []
        self._exchange = None
        self._running = True
        self._busy = True
        self._ooms_at_start = self._ooms_seen = kernel.oom_kills()
        self._last_frame = None
        self._versions = kernel.read_json(os.path.join(given.run, "versions.json"))

        self._link = link.Link(given.run, self.watch, self)
        self._kernel = kernel.Kernel(given.run, given.python, given.workspace, self._link)
        self._kernel.find()
        self._listen(given.port)

    # ---- descriptors and time

    def watch(self, fd, readable, writable):
        mask = (select.EPOLLIN if readable else 0) | (select.EPOLLOUT if writable else 0)
        before = self._watched.pop(fd, (0,))[0]
        if mask:
            self._watched[fd] = (mask, readable, writable)
        if mask != before:
            if not before:
                self._epoll.register(fd, mask)
            elif mask:
                self._epoll.modify(fd, mask)
            else:
                self._epoll.unregister(fd)

    def serve(self):
        if self._kernel.pidfd is not None:
            self.watch(self._kernel.pidfd, self._on_exit, None)
        elif self._kernel.exit is not None:
            self._add_exit()
        while self._running:
            for fd, event in self._epoll.poll(self._timeout()):
                _, readable, writable = self._watched.get(fd, (0, None, None))
                if event & select.EPOLLOUT and writable:
                    writable()
                elif readable:
                    readable()
            self._pass_time()
            self._pump()
            for connection in list(self._connections):
                connection.settle()
            self._link.pause(self._records.full)
        for connection in list(self._connections):
            connection.settle()

    def _deadlines(self):
        for connection in self._connections:
            if connection.deadline is not None:
                yield connection.deadline
        if self._exchange is not None:
            yield self._exchange.deadline
            yield self._exchange.alive_at
        if self._kernel.expected_until is not None:
            yield self._kernel.expected_until

    def _timeout(self):
        """None, and so no wake-up at all, when nothing is going on."""
        first = min(self._deadlines(), default=None)
        return None if first is None else max(0.0, first - time.monotonic())

    def _pass_time(self):
        now = time.monotonic()
        for connection in list(self._connections):
            if connection.deadline is not None and now >= connection.deadline:
                connection.close()
        if self._kernel.expected_until is not None and now >= self._kernel.expected_until:
            self._kernel.start()
            self.watch(self._kernel.pidfd, self._on_exit, None)
        exchange = self._exchange
        if exchange is None:
            return
        if now >= exchange.deadline:
            self._end("limit")
        elif now >= exchange.alive_at:
            exchange.write(exchange.after, records.encode({"seq": exchange.after, "is": "alive"}))

    # ---- from the kernel (link.Link's owner)

    def is_kernel(self, pid):
        return self._kernel.is_kernel(pid)

    def on_hello(self, pid, busy):
        if self._kernel.pid is None:
            self._kernel.took_over(pid)
            self.watch(self._kernel.pidfd, self._on_exit, None)
        self._set_busy(busy or self._link.delivering)

    def on_text(self, stream, data):
        self._records.add_text(stream, data)

    def on_frame(self, header, text, payload):
        self._records.add_frame(text, payload)
        if header.get("ev") in ("done", "ready"):
            self._ooms_seen = kernel.oom_kills()
            self._set_busy(False)

    def on_violation(self, what):
        self._records.add("violation", what=what)

    def _set_busy(self, busy):
        if busy:
            self._records.number_text()
        self._busy = busy
        self._records.idle = not busy

    def _on_exit(self):
        self.watch(self._kernel.pidfd, None, None)
        self._link.finish()
        self._kernel.ended()
        self._link.drain()
        self._add_exit()

    def _add_exit(self):
        self._busy = False
        self._records.idle = True
        self._records.add("exit", **self._kernel.exit, oom_kills=kernel.oom_kills() - self._ooms_seen)

    # ---- to the server

    @property
    def epoch(self):
        """Names the numbers of the records, and the guest among its twins."""
        return f"{self._name}-{hashlib.sha256(b'epoch' + self._secret.encode()).hexdigest()[:8]}"

    def _pump(self):
        """Writes into the exchange what its connection takes, and ends it when it has all."""
        while self._exchange is not None:
            exchange = self._exchange
            exchange.connection.settle()
            if self._exchange is None or exchange.connection.unsent:
                break
            following = self._records.after(exchange.after)
            if following is None:
                why = self._why_ended(exchange)
            else:
                why = "acknowledge" if exchange.written >= _ANSWER_BYTES else None
            if why is not None:
                self._end(why)
            elif following is None:
                break
            else:
                exchange.write(*following)

    def _why_ended(self, exchange):
        if self._kernel.exit is not None:
            return "exit"
        if exchange.until == "now":
            return "now"
        return None if self._busy else "done"

    def _end(self, why):
        exchange, self._exchange = self._exchange, None
        exchange.end(why)

    # ---- connections

    def _listen(self, port):
        path = os.path.join(self._run, "relay.sock")
        if os.path.lexists(path):
            os.unlink(path)
        inner = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        inner.bind(path)
        inner.listen(32)
        outer = http.listen_on_port(port)
        self.port = outer.getsockname()[1]
        self._listeners = (inner, outer)  # kept open
        self.watch(inner.fileno(), lambda: self._accept(inner, None), None)
        self.watch(outer.fileno(), lambda: self._accept(outer, lambda: self._secret), None)
        kernel.write_json(
            os.path.join(self._run, "relay.json"),
            {"pid": os.getpid(), "started": kernel.started(os.getpid()), "port": self.port},
        )

    def _accept(self, listener, secret):
        try:
            end, _ = listener.accept()
        except OSError:
            return
        if secret is not None:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if len(self._connections) >= _CONNECTIONS:
            # Who has shown no secret goes first, then who is not being served, the oldest each time.
            self._connections.sort(key=lambda one: (one.trusted, one.answering))
            self._connections[0].close()
        self._connections.append(http.Connection(end, secret, self.watch, self._request, self._closed))

    def _closed(self, connection):
        self._connections.remove(connection)
        if self._exchange is not None and self._exchange.connection is connection:
            self._exchange = None

    # ---- requests

    def _request(self, connection, request):
        routes = {
            "/exchange": ("POST", self._serve_exchange),
            "/signal": ("POST", self._serve_signal),
            "/state": ("GET", lambda connection, _: connection.answer(200, self._state())),
        }
        if connection.inner:
            routes["/renew"] = ("POST", self._serve_renew)
            routes["/end"] = ("POST", self._serve_end)
        try:
            if request.path not in routes:
                raise Refused(404, "there are /exchange, /signal and /state")
            method, serve = routes[request.path]
            if request.method != method:
                raise Refused(405, f"{request.path} wants {method}")
            serve(connection, request)
        except Refused as refusal:
            connection.refuse(refusal)

    def _state(self):
        held = self._kernel
        alive = held.pid is not None and held.exit is None
        return {
            "epoch": self.epoch,
            "port": self.port,
            "pid": os.getpid(),
            "kernel": {
                "pid": held.pid,
                "alive": alive,
                "connected": self._link.connected,
                "exit": held.exit,
            },
            "python": self._versions.get("python"),
            "ipython": self._versions.get("ipython"),
            "sent": self._link.sent,
            "busy": self._busy,
            "last": self._records.last,
            "oldest": self._records.oldest,
            "kept": self._records.size,
            "oom_kills": kernel.oom_kills() - self._ooms_at_start,
        }

    def _conflict(self, reason, message):
        raise Refused(409, message, reason=reason, state=self._state())

    def _serve_exchange(self, connection, request):
        query = request.query
        until = query.get("until", "done")
        after = _number(query, "after", 0, 1 << 62)
        limit = _number(query, "limit", 1, 3600, 60)
        if until not in ("done", "now"):
            raise Refused(400, "until: done or now")
        if query.get("epoch") != self.epoch:
            self._conflict("epoch", "this is another epoch")
        if after > self._records.last:
            raise Refused(400, f"after: the last record is {self._records.last}")
        if request.body:
            self._deliver(_number(query, "send", 1, 1 << 62), request.body)
        self._records.forget(after)
        if self._exchange is not None:
            self._end("replaced")
        connection.begin()
        self._exchange = Exchange(connection, after, until, limit)

    def _deliver(self, number, frame):
        try:
            sizes = link.cut_frame(frame)
            if sizes is None or len(frame) != 8 + sum(sizes):
                raise link.Violation("not one whole frame")
            header = link.parse_header(frame[8 : 8 + sizes[0]])
        except link.Violation as violation:
            raise Refused(400, f"the body: {violation}") from None
        if self._kernel.exit is not None:
            self._conflict("exited", "the kernel is dead")
        sent = self._link.sent
        if not self._link.connected and not (sent is not None and number == sent):
            self._conflict("not_connected", "the kernel has not connected")
        digest = hashlib.sha256(frame).digest()
        if number == sent:
            if self._last_frame not in (None, digest):
                self._conflict("conflict", f"frame {number} was another one")
            return
        if number != sent + 1:
            self._conflict("gap", f"the next frame is {sent + 1}")
        if not self._link.takes_more:
            self._conflict("not_reading", "the kernel does not read")
        self._last_frame = digest
        if header.get("op") in ("execute", "resumed"):
            self._set_busy(True)
        if header.get("op") == "execute":
            self._link.drain()
            self._records.add("sent", number=number)
        self._link.send(frame)

    def _serve_signal(self, connection, request):
        what = request.query.get("what")
        signals = {
            "interrupt": self._kernel.interrupt,
            "kill_children": self._kernel.kill_children,
            "kill": self._kernel.kill,
        }
        if what not in signals:
            raise Refused(400, "what: interrupt, kill_children or kill")
        signals[what]()
        connection.answer(204)

    def _serve_renew(self, connection, _request):
        """The secret on disk may be a new one: then this is a guest of its own from now on."""
        secret = read_secret(self._run)
        if secret is not None and secret != self._secret:
            self._secret = secret
            if self._exchange is not None:
                self._end("replaced")
            for other in list(self._connections):
                if not other.inner:
                    other.settle()
                    other.close()
        connection.answer(200, self._state())

    def _serve_end(self, connection, _request):
        self._running = False
        connection.answer(204)


def _number(query, name, least, most, otherwise=None):
    text = query.get(name)
    if text is None and otherwise is not None:
        return otherwise
    if text is None or not (text.isascii() and text.isdigit()) or not least <= int(text[:20]) <= most:
        raise Refused(400, f"{name}: a number from {least} to {most} is wanted")
    return int(text)


def run(given):
    os.umask(0o077)
    kernel.set_oom_score(os.getpid(), -900)
    relay = Relay(given)
    os.write(given.ready, b"1")
    os.close(given.ready)
    relay.serve()
    return 0
