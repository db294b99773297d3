"""What tests ask for at GET /_fake/counters."""

import asyncio
from collections import Counter


class Counters:
    def __init__(self):
        self.clear()

    def clear(self):
        self.requests = Counter()  # by "POST /v1/sandboxes/{id}/exec"
        self.answers = Counter()  # by status
        self.faults = Counter()  # by name: what defects did
        self.events = Counter()  # created, deleted, reaped, execs ...
        self.bytes_in = self.bytes_out = self.connections = 0

    def as_json(self):
        return {
            "requests": dict(self.requests),
            "answers": {str(status): count for status, count in self.answers.items()},
            "faults": dict(self.faults),
            "events": dict(self.events),
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "connections": self.connections,
        }


class CountingTransport:
    def __init__(self, transport, counters):
        self.transport, self.counters = transport, counters

    def __getattr__(self, name):
        return getattr(self.transport, name)

    def write(self, data):
        self.counters.bytes_out += len(data)
        self.transport.write(data)

    def writelines(self, pieces):
        pieces = list(pieces)
        self.counters.bytes_out += sum(map(len, pieces))
        self.transport.writelines(pieces)


class CountingProtocol(asyncio.Protocol):
    """A connection of aiohttp's, with its bytes counted as they are on the wire."""

    def __init__(self, handler, counters):
        self.handler, self.counters = handler, counters

    def connection_made(self, transport):
        self.counters.connections += 1
        self.handler.connection_made(CountingTransport(transport, self.counters))

    def data_received(self, data):
        self.counters.bytes_in += len(data)
        self.handler.data_received(data)

    def eof_received(self):
        return self.handler.eof_received()

    def connection_lost(self, error):
        self.handler.connection_lost(error)

    def pause_writing(self):
        self.handler.pause_writing()

    def resume_writing(self):
        self.handler.resume_writing()
