"""The relay: the kernel on one side, the server's requests on the other (docs/guest-relay.md)."""

import hashlib
import os
import re
import secrets
import time

from pykeep_guest import kernel, link, records
from pykeep_guest.exchange import Exchange
from pykeep_guest.http import Refused
from pykeep_guest.loop import Loop
from pykeep_guest.server import Server


def read_secret(run):
    try:
        with open(os.path.join(run, "secret")) as file:
            secret = file.read().strip()
    except (OSError, ValueError):
        return None
    return secret if re.fullmatch("[0-9a-f]{64}", secret) else None


class Relay:
    def __init__(self, given):
        self._run = given.run
        self._loop = Loop()
        self.secret = read_secret(given.run)
        self._name = secrets.token_hex(4)
        self._records = records.Records()
        self._exchange = None
        self._running = True
        self._busy = True
        self._ooms_at_start = self._ooms_seen = kernel.oom_kills()
        self._last_frame = None
        self._versions = kernel.read_json(os.path.join(given.run, "versions.json"))

        self._link = link.Link(given.run, self._loop.watch, self)
        self.kernel = kernel.Kernel(given.run, given.python, given.workspace, self._link)
        self.kernel.find()
        self.server = Server(given.run, given.port, self._loop.watch, self)

    def serve(self):
        if self.kernel.pidfd is not None:
            self._watch_kernel()
        elif self.kernel.exit is not None:
            self._add_exit()
        while self._running:
            self._loop.turn(self._deadlines())
            self._pass_time()
            self._pump()
            self.server.settle()
            self._link.pause(self._records.full)
        self.server.settle()

    def _deadlines(self):
        """None, and so no wake-up at all, when nothing is going on."""
        yield from self.server.deadlines()
        if self._exchange is not None:
            yield from self._exchange.deadlines()
        if self.kernel.expected_until is not None:
            yield self.kernel.expected_until

    def _pass_time(self):
        self.server.pass_time()
        expected = self.kernel.expected_until
        if expected is not None and time.monotonic() >= expected:
            self.kernel.start()
            self._watch_kernel()
        if self._exchange is not None and not self._exchange.pass_time():
            self._end("limit")

    # ---- the kernel (link.Link's owner)

    def _watch_kernel(self):
        self._loop.watch(self.kernel.pidfd, self._on_exit, None)

    def is_kernel(self, pid):
        return self.kernel.is_kernel(pid)

    def on_hello(self, pid, busy):
        if self.kernel.pid is None:
            self.kernel.took_over(pid)
            self._watch_kernel()
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
        self._loop.watch(self.kernel.pidfd, None, None)
        self._link.finish()
        self.kernel.ended()
        self._link.drain()
        self._add_exit()

    def _add_exit(self):
        self._busy = False
        self._records.idle = True
        self._records.add("exit", **self.kernel.exit, oom_kills=kernel.oom_kills() - self._ooms_seen)

    # ---- the exchange

    def _pump(self):
        """Writes into the exchange what its connection takes, and ends it when it has all."""
        while self._exchange is not None:
            exchange = self._exchange
            exchange.connection.settle()
            if self._exchange is None or exchange.connection.unsent:
                break
            following = self._records.after(exchange.after)
            why = None if following else self._why_ended(exchange)
            # All that is kept may have been written: until it is acknowledged nothing more is read.
            if why is None and (exchange.full or (following is None and self._records.full)):
                why = "acknowledge"
            if why is not None:
                self._end(why)
            elif following is None:
                break
            else:
                exchange.write(*following)

    def _why_ended(self, exchange):
        if self.kernel.exit is not None:
            return "exit"
        if exchange.until == "now":
            return "now"
        return None if self._busy else "done"

    def _end(self, why):
        exchange, self._exchange = self._exchange, None
        exchange.end(why)

    def on_closed(self, connection):
        if self._exchange is not None and self._exchange.connection is connection:
            self._exchange = None

    # ---- what the server's requests do

    @property
    def epoch(self):
        """Names the numbers of the records, and the guest among its twins."""
        return f"{self._name}-{hashlib.sha256(b'epoch' + self.secret.encode()).hexdigest()[:8]}"

    def state(self):
        held = self.kernel
        alive = held.pid is not None and held.exit is None
        return {
            "epoch": self.epoch,
            "port": self.server.port,
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

    def exchange(self, connection, after, until, limit):
        """The newest one; the server has all records up to `after`."""
        self._records.forget(after)
        if self._exchange is not None:
            self._end("replaced")
        connection.begin()
        self._exchange = Exchange(connection, after, until, limit)

    @property
    def last(self):
        return self._records.last

    def deliver(self, number, frame):
        """Gives the frame to the kernel, once. Refuses with 400 or 409."""
        header = _header_of(frame)
        sent = self._link.sent
        if self.kernel.exit is not None:
            self.conflict("exited", "the kernel is dead")
        if not self._link.connected and (sent is None or number != sent):
            self.conflict("not_connected", "the kernel has not connected")
        digest = hashlib.sha256(frame).digest()
        if number == sent and self._last_frame in (None, digest):
            return
        if number == sent:
            self.conflict("conflict", f"frame {number} was another one")
        if number != sent + 1:
            self.conflict("gap", f"the next frame is {sent + 1}")
        if not self._link.takes_more:
            self.conflict("not_reading", "the kernel does not read")
        self._last_frame = digest
        if header.get("op") == "execute":
            self._link.drain()  # it was printed before this cell
            self._records.add("sent", number=number)
        if header.get("op") in ("execute", "resumed"):
            self._set_busy(True)
        self._link.send(frame)

    def conflict(self, reason, message):
        raise Refused(409, message, reason=reason, state=self.state())

    def renew(self):
        """The secret on disk may be a new one: then this is a guest of its own from now on."""
        secret = read_secret(self._run)
        if secret is None or secret == self.secret:
            return
        self.secret = secret
        if self._exchange is not None:
            self._end("replaced")
        self.server.close_outer()

    def stop(self):
        self._running = False


def _header_of(frame):
    try:
        sizes = link.cut_frame(frame)
        if sizes is None or len(frame) != 8 + sum(sizes):
            raise link.Violation("not one whole frame")
        return link.parse_header(frame[8 : 8 + sizes[0]])
    except link.Violation as violation:
        raise Refused(400, f"the body: {violation}") from None


def run(given):
    os.umask(0o077)
    kernel.set_oom_score(os.getpid(), -900)
    relay = Relay(given)
    os.write(given.ready, b"1")
    os.close(given.ready)
    relay.serve()
    return 0
