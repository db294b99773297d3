"""One exchange: an answer that records go into as they come (docs/guest-relay.md, "POST /exchange")."""

import time

from pykeep_guest import records

_ALIVE_SECONDS = 10
_BYTES = 8 << 20  # in one answer; the next request acknowledges them
_GRACE_SECONDS = 10  # for a reader to take what was written when its limit has passed


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

    @property
    def full(self):
        return self.written >= _BYTES

    def deadlines(self):
        return self.deadline, self.alive_at

    def pass_time(self):
        """False when its limit has passed."""
        now = time.monotonic()
        if now >= self.alive_at:
            self.write(self.after, records.encode({"seq": self.after, "is": "alive"}))
        return now < self.deadline
