"""Answers that are sent as they come, end with their client, and may be cut by a defect."""

import asyncio
import contextlib
import time

from aiohttp import web
from defects import Dropped, drop
from go_json import Failure

WATCH = 0.02  # seconds between two looks whether the client is still there


class Streamed(web.StreamResponse):
    """`kind`: "proxy" or "stream", as in the names of the defects."""

    def __init__(self, defects, kind, request, **options):
        super().__init__(**options)
        self.defects, self.kind, self.request = defects, kind, request
        self.sent = 0
        self.most = None  # bytes
        self.until = None

    async def prepare(self, request):
        if self.prepared:
            return await super().prepare(request)
        if self.defects.take("unreachable_after", request):
            raise Failure(502, "agent unreachable")
        if self.defects.take("drop_after", request):
            drop(request)
        self.most = self.defects.strikes(f"cut_{self.kind}_bytes", request)
        seconds = self.defects.strikes(f"cut_{self.kind}_seconds", request)
        self.until = None if seconds is None else time.monotonic() + seconds
        request["streamed"] = self
        return await super().prepare(request)

    def is_over(self):
        return self.until is not None and time.monotonic() >= self.until

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


@contextlib.asynccontextmanager
async def ends_with_client(request):
    """What is in it is cancelled when the client goes away, however silent it is; raises Dropped then."""
    task = asyncio.current_task()
    gone = False

    async def watch():
        nonlocal gone
        while request.transport is not None and not request.transport.is_closing():
            if "streamed" in request and request["streamed"].is_over():
                request.transport.abort()
            await asyncio.sleep(WATCH)
        gone = True
        task.cancel()

    watching = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if not gone:
            raise
        task.uncancel()
        raise Dropped from None
    finally:
        watching.cancel()
