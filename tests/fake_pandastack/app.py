"""The whole fake: its parts, and what every request goes through."""

import asyncio
import re
import secrets
import sys
import time

from aiohttp import web
from catalogue import Catalogue
from commands import Commands
from control import Control
from counters import Counters, CountingProtocol
from defects import Defects, Dropped, too_many
from files import Files
from go_json import Failure, answer, not_found, text
from kernels import Kernels
from memory import Memory
from proxy import Proxy
from sandboxes import Sandboxes
from snapshots import Snapshots
from streamed import Streamed

TOKEN = "pds_local_dev_token"
BURST, PER_SECOND = 50, 25
REAPER_LOOKS = 30  # seconds
UNLIMITED = ("/healthz", "/readyz", "/version", "/metrics")


class Fake:
    workspace = "local-dev"

    def __init__(self, directory, python, image_tool=None):
        self.directory, self.python = directory, python
        self.counters = Counters()
        self.defects = Defects(self.counters)
        self.memory = Memory(self, image_tool)
        self.sandboxes = Sandboxes(self)
        self.snapshots = Snapshots(self)
        self.kernels = Kernels(self)
        self.catalogue = Catalogue(self)
        self.parts = [self.sandboxes, self.snapshots, Commands(self), self.kernels, Files(self), Proxy(self)]
        self.parts += [self.catalogue, Control(self)]
        self.ahead = 0.0  # seconds that ticks have added to the idle clock
        self.tokens, self.refilled = float(BURST), time.monotonic()
        (directory / "sandboxes").mkdir()
        (directory / "snapshots").mkdir()

    def now(self):
        return time.monotonic() + self.ahead

    def streamed(self, request, kind="stream", **options):
        return Streamed(self.defects, kind, request, **options)

    def now_there(self):
        """Beside the counters."""
        guests = [sandbox.guest for sandbox in self.sandboxes.all.values() if sandbox.guest]
        return {
            "sandboxes": {sandbox.id: sandbox.status for sandbox in self.sandboxes.all.values()},
            "snapshots": list(self.snapshots.all),
            "kernels": len(self.kernels.all),
            "processes": sum(len(guest.processes()) for guest in guests),
        }

    async def reset(self):
        self.defects.reset()
        sandboxes = list(self.sandboxes.all.values())
        await asyncio.gather(*[self.sandboxes.remove(sandbox, "ended") for sandbox in sandboxes])
        for snapshot in list(self.snapshots.all.values()):
            self.snapshots.remove(snapshot, "ended")
        self.catalogue.volumes.clear()
        self.counters.clear()

    async def agent_restart(self):
        """The agent's memory is gone; sandboxes fail, persistent ones are hibernated."""
        self.counters.faults["agent_restart"] += 1
        self.kernels.restart()
        for sandbox in list(self.sandboxes.all.values()):
            if sandbox.guest is None:
                continue
            if sandbox.persistent:
                async with sandbox.moving:
                    await self.sandboxes.put_to_sleep(sandbox)
            else:
                await self.sandboxes.fail(sandbox)

    # ---- serving ----

    async def serve(self, port):
        """Until stop(); the port that it is."""
        app = web.Application(middlewares=[self.outermost], client_max_size=64 << 20)
        app.on_response_prepare.append(self.sign)
        for part in self.parts:
            part.routes(app.router)
        self.runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self.runner.setup()
        make = self.runner.server
        loop = asyncio.get_running_loop()
        self.listener = await loop.create_server(
            lambda: CountingProtocol(make(), self.counters), "127.0.0.1", port
        )
        self.reaper = asyncio.create_task(self.reap())
        return self.listener.sockets[0].getsockname()[1]

    async def reap(self):
        while True:
            await asyncio.sleep(REAPER_LOOKS)
            await self.look()

    async def look(self):
        """The reaper's."""
        await self.sandboxes.reap()
        self.kernels.expire()
        self.snapshots.expire()

    async def stop(self):
        self.reaper.cancel()
        self.listener.close()
        await self.reset()
        await self.runner.cleanup()

    # ---- every request ----

    @web.middleware
    async def outermost(self, request, handler):
        if request.path.startswith("/_fake/"):
            return await handler(request)
        request["route"] = f"{request.method} {route_of(request)}"
        request["workspace"] = self.workspace
        self.counters.requests[request["route"]] += 1
        try:
            response = await self.edge(request, handler)
        except Failure as failure:
            response = failure.answer()
        except ConnectionError:
            response = web.Response(status=499)  # goes nowhere
        except web.HTTPNotFound:
            response = not_found()
        except web.HTTPMethodNotAllowed as refused:
            response = text(405, "Method Not Allowed\n", {"Allow": refused.headers["Allow"]})
        except web.HTTPException:
            raise
        except Exception as error:  # as the server's recovery of a panic
            print(f"{request['route']}: {error!r}", file=sys.stderr, flush=True)
            response = text(500, '{"error":"internal server error"}\n')
        self.counters.answers[response.status] += 1
        return response

    async def sign(self, request, response):
        given = request.headers.get("X-Request-Id", "")[:64]
        is_printable = re.fullmatch(r"[\x21-\x7e]+", given)
        response.headers["X-Request-Id"] = given if is_printable else secrets.token_hex(8)

    async def edge(self, request, handler):
        if request.path.startswith("/v1"):
            self.authenticate(request)
            self.defects.roll(request)
            await self.delay(request)
            if self.defects.get("rate_limit"):
                self.limit()
            if request.method in ("POST", "PUT", "PATCH") and not has_length(request):
                return text(411, "Length Required\n")
            await self.disasters(request)
            self.defects.before(request)
        response = await handler(request)
        return self.after(request, response) if request.path.startswith("/v1") else response

    def authenticate(self, request):
        """As with PANDASTACK_AUTH_MODE=stub: only an unknown API token is refused."""
        given = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        given = given or request.query.get("access_token", "")
        if given.startswith("pds_") and given != TOKEN:
            raise Failure(401, "unauthorized", {"detail": "invalid api token"})
        if not given and self.defects.get("require_auth"):
            raise Failure(401, "unauthorized", {"detail": "missing bearer token"})

    def limit(self):
        now = time.monotonic()
        self.tokens = min(BURST, self.tokens + (now - self.refilled) * PER_SECOND)
        self.refilled = now
        if self.tokens < 1:
            self.counters.faults["rate_limit"] += 1
            raise too_many(self.workspace)
        self.tokens -= 1

    async def delay(self, request):
        drawn = self.defects.strikes("delay_ms", request) or self.defects.get("delay_ms")
        if drawn:
            await asyncio.sleep(drawn / 1000)

    async def disasters(self, request):
        """Of random= only."""
        if self.defects.drew("agent_restart", request):
            self.kernels.restart()
        if self.defects.drew("expired", request):
            sandbox = self.sandboxes.all.get(request.match_info.get("id"))
            if sandbox:
                await self.sandboxes.remove(sandbox, "reaped")

    def after(self, request, response):
        """What happens to the answer of something that was done."""
        if response.prepared:
            return response
        if self.defects.take("drop_after", request):
            request.transport.abort()
            raise Dropped
        if self.defects.take("unreachable_after", request):
            return answer({"error": "agent unreachable"}, 502)
        if response.status < 300 and response.body and self.defects.take("wrong_content_type", request):
            response.headers["Content-Type"] = "text/plain; charset=utf-8"
        most = self.defects.strikes("cut_answer_bytes", request) if response.body else None
        if most is not None:
            return Cut(response, most)
        return response


class Cut(web.Response):
    """An answer of which only the first `most` bytes of the body arrive."""

    def __init__(self, whole, most):
        super().__init__(status=whole.status, body=whole.body, headers=whole.headers)
        self.most = min(most, len(whole.body) - 1)

    async def write_eof(self, data=b""):
        self._payload_writer.length = None
        await self._payload_writer.write(self.body[: self.most])
        if self._req.transport is not None:
            self._req.transport.close()
        raise Dropped


def route_of(request):
    resource = request.match_info.route.resource
    canonical = resource.canonical if resource else request.path
    return canonical.removesuffix("/{path}")


def has_length(request):
    return "Content-Length" in request.headers or "Transfer-Encoding" in request.headers
