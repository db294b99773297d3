"""An answer that is sent as it comes, and may be cut by a defect."""

import time

from aiohttp import web
from defects import Dropped, drop
from go_json import Failure


class Streamed(web.StreamResponse):
    """`kind`: "proxy" or "stream", as in the names of the defects."""

    def __init__(self, defects, kind, **options):
        super().__init__(**options)
        self.defects, self.kind = defects, kind
        self.sent = 0
        self.longest = self.most = None

    async def prepare(self, request):
        if self.prepared:
            return await super().prepare(request)
        if self.defects.take("unreachable_after", request):
            raise Failure(502, "agent unreachable")
        if self.defects.take("drop_after", request):
            drop(request)
        self.request = request
        self.start = time.monotonic()
        self.most = self.defects.strikes(f"cut_{self.kind}_bytes", request)
        self.longest = self.defects.strikes(f"cut_{self.kind}_seconds", request)
        return await super().prepare(request)

    def is_over(self):
        return self.longest is not None and time.monotonic() - self.start >= self.longest

    def time_left(self):
        """Until the connection is to be cut; None: it is not."""
        return None if self.longest is None else max(0.0, self.start + self.longest - time.monotonic())

    async def write(self, data):
        if self.is_over():
            drop(self.request)
        if self.most is not None and self.sent + len(data) > self.most:
            rest = data[: self.most - self.sent]
            if rest:
                await super().write(rest)
            if self.request.transport is not None:
                self.request.transport.close()  # after what was written
            raise Dropped
        self.sent += len(data)
        await super().write(data)
