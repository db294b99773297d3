"""What came from the kernel: numbered, and kept until the server has it."""

import collections
import json
import struct

PIECE = 256 << 10  # of text, in one record
LIMIT = 16 << 20  # kept; above it the kernel has to wait
IDLE_LIMIT = 64 << 10  # of text that came between two cells
_OVERHEAD = 200  # bytes that a record costs beside its own
_SIZES = struct.Struct("<II")


def encode(header, payload=b""):
    """A record as two pieces of bytes, so that a large payload is not copied."""
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    return _SIZES.pack(len(text), len(payload)) + text, payload


class Records:
    def __init__(self):
        self.last = 0
        self.idle = False  # no cell runs: text does not wait for a reader, the oldest is dropped
        self._kept = {}  # number -> record, without gaps
        self._size = 0
        # Text has no number until somebody asks for it or something comes behind it; so what was
        # written in many small pieces is one record, and what is dropped leaves no gap.
        self._text = collections.deque()  # [stream, bytearray]
        self._text_size = 0
        self._dropped = 0

    @property
    def oldest(self):
        return self.last + 1 - len(self._kept)

    @property
    def size(self):
        return self._size + self._text_size

    @property
    def full(self):
        return self.size >= LIMIT

    def add_text(self, stream, data):
        piece = self._text[-1] if self._text else None
        if piece is None or piece[0] != stream or len(piece[1]) + len(data) > PIECE:
            self._text.append([stream, bytearray(data)])
            self._text_size += _OVERHEAD
        else:
            piece[1] += data
        self._text_size += len(data)
        while self.idle and self._text_size > IDLE_LIMIT:
            self._drop(self._text_size - IDLE_LIMIT)

    def _drop(self, size):
        _, oldest = self._text[0]
        size = min(size, len(oldest))
        del oldest[:size]
        self._dropped += size
        self._text_size -= size
        if not oldest:
            self._text.popleft()
            self._text_size -= _OVERHEAD

    def number_text(self):
        """From here on what there is belongs to what comes next, and nothing of it is dropped."""
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self._number(f'"is":"dropped","bytes":{dropped}')
        while self._text:
            stream, data = self._text.popleft()
            self._number(f'"is":"{stream}"', data)
        self._text_size = 0

    def add(self, kind, **fields):
        self.number_text()
        self._number(json.dumps({"is": kind, **fields}, separators=(",", ":"))[1:-1])

    def add_frame(self, header, payload):
        """`header`: JSON as the kernel wrote it."""
        self.number_text()
        self._number(f'"is":"frame","header":{header}', payload)

    def _number(self, fields, payload=b""):
        self.last += 1
        record = encode(f'{{"seq":{self.last},{fields}}}'.encode(), payload)
        self._kept[self.last] = record
        self._size += sum(map(len, record)) + _OVERHEAD

    def after(self, number):
        """The next record's number and the record itself, or None."""
        if number >= self.last:
            self.number_text()
        number = max(number + 1, self.oldest)
        return (number, self._kept[number]) if number <= self.last else None

    def forget(self, number):
        """All up to `number`: the server has them."""
        for old in range(self.oldest, min(number, self.last) + 1):
            self._size -= sum(map(len, self._kept.pop(old))) + _OVERHEAD
