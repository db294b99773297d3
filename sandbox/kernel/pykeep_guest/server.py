"""Who may ask and what: the listeners, the connections, and the requests' grammar."""

import os
import socket
import time

from pykeep_guest import http, kernel
from pykeep_guest.http import Refused

_CONNECTIONS = 32


class Server:
    def __init__(self, run, port, watch, relay):
        self._watch = watch
        self._relay = relay
        self._connections = []
        path = os.path.join(run, "relay.sock")
        if os.path.lexists(path):
            os.unlink(path)
        inner = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        inner.bind(path)
        inner.listen(32)
        outer = http.listen_on_port(port)
        self.port = outer.getsockname()[1]
        self._listeners = (inner, outer)  # kept open
        watch(inner.fileno(), lambda: self._accept(inner, None), None)
        watch(outer.fileno(), lambda: self._accept(outer, lambda: relay.secret), None)
        kernel.write_json(
            os.path.join(run, "relay.json"),
            {"pid": os.getpid(), "started": kernel.started(os.getpid()), "port": self.port},
        )

    # ---- connections

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
        self._connections.append(http.Connection(end, secret, self._watch, self._request, self._closed))

    def _closed(self, connection):
        self._connections.remove(connection)
        self._relay.on_closed(connection)

    def settle(self):
        for connection in list(self._connections):
            connection.settle()

    def deadlines(self):
        return (one.deadline for one in self._connections if one.deadline is not None)

    def pass_time(self):
        now = time.monotonic()
        for connection in list(self._connections):
            if connection.deadline is not None and now >= connection.deadline:
                connection.close()

    def close_outer(self):
        for connection in [one for one in self._connections if not one.inner]:
            connection.settle()
            connection.close()

    # ---- requests

    def _request(self, connection, request):
        routes = {
            "/exchange": ("POST", self._exchange),
            "/signal": ("POST", self._signal),
            "/state": ("GET", self._state),
        }
        if connection.inner:
            routes["/renew"] = ("POST", self._renew)
            routes["/end"] = ("POST", self._end)
        try:
            if request.path not in routes:
                raise Refused(404, "there are /exchange, /signal and /state")
            method, serve = routes[request.path]
            if request.method != method:
                raise Refused(405, f"{request.path} wants {method}")
            serve(connection, request)
        except Refused as refusal:
            connection.refuse(refusal)

    def _exchange(self, connection, request):
        query = request.query
        until = query.get("until", "done")
        after = _number(query, "after", 0, 1 << 62)
        limit = _number(query, "limit", 1, 3600, 60)
        if until not in ("done", "now"):
            raise Refused(400, "until: done or now")
        if query.get("epoch") != self._relay.epoch:
            self._relay.conflict("epoch", "this is another epoch")
        if after > self._relay.last:
            raise Refused(400, f"after: the last record is {self._relay.last}")
        if request.body:
            self._relay.deliver(_number(query, "send", 1, 1 << 62), request.body)
        self._relay.exchange(connection, after, until, limit)

    def _signal(self, connection, request):
        held = self._relay.kernel
        signals = {"interrupt": held.interrupt, "kill_children": held.kill_children, "kill": held.kill}
        what = request.query.get("what")
        if what not in signals:
            raise Refused(400, "what: interrupt, kill_children or kill")
        signals[what]()
        connection.answer(204)

    def _state(self, connection, _request):
        connection.answer(200, self._relay.state())

    def _renew(self, connection, _request):
        self._relay.renew()
        connection.answer(200, self._relay.state())

    def _end(self, connection, _request):
        self._relay.stop()
        connection.answer(204)


def _number(query, name, least, most, otherwise=None):
    text = query.get(name)
    if text is None and otherwise is not None:
        return otherwise
    if text is None or not (text.isascii() and text.isdigit()) or not least <= int(text[:20]) <= most:
        raise Refused(400, f"{name}: a number from {least} to {most} is wanted")
    return int(text)
