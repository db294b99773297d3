"""Ports of a guest, and the reverse proxy to them."""

import asyncio
import functools

import aiohttp
from aiohttp import client_proto, web
from go_json import Failure, answer, not_found, struct
from guest import GuestError
from streamed import ends_with_client

HOP_BY_HOP = {
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
NOT_FORWARDED = HOP_BY_HOP | {"authorization", "host", "x-pandastack-broker-auth", "expect"}


class GuestConnector(aiohttp.BaseConnector):
    """Connections to ports in one guest, kept as any proxy keeps them."""

    def __init__(self, guest):
        super().__init__(keepalive_timeout=60)
        self.guest = guest
        self.factory = functools.partial(client_proto.ResponseHandler, loop=asyncio.get_running_loop())

    async def _create_connection(self, req, traces, timeout):
        try:
            made = await self.guest.connect(req.url.port)
        except GuestError as error:
            raise aiohttp.ClientConnectionError(str(error)) from None
        made.setblocking(False)
        _, protocol = await asyncio.get_running_loop().create_connection(self.factory, sock=made)
        return protocol


class Proxy:
    def __init__(self, fake):
        self.fake = fake

    def routes(self, router):
        one = "/v1/sandboxes/{id}"
        router.add_get(one + "/ports", self.list)
        router.add_post(one + "/ports", self.add)
        router.add_delete(one + "/ports/{port}", self.remove)
        router.add_route("*", one + "/proxy/{port}", self.forward)
        router.add_route("*", one + "/proxy/{port}/{path:.*}", self.forward)

    # ---- labels ----

    def shown(self, sandbox, port, listening):
        shown = {"port": port}
        if sandbox.ports.get(port):
            shown["label"] = sandbox.ports[port]
        source = "user" if port in sandbox.ports else "detected"
        url = f"/v1/sandboxes/{sandbox.id}/proxy/{port}/"
        return shown | {"listening": port in listening, "source": source, "proxy_url": url}

    async def listening(self, sandbox):
        return set(await sandbox.guest.listening()) if sandbox.guest else set()

    async def list(self, request):
        sandbox = self.fake.sandboxes.find(request)
        listening = await self.listening(sandbox)
        return answer(
            [self.shown(sandbox, port, listening) for port in sorted(listening | sandbox.ports.keys())]
        )

    async def add(self, request):
        sandbox = self.fake.sandboxes.find(request)
        asked = await struct(request, "portReq", {"port": int, "label": str})
        port = asked.get("port", 0)
        if not 1 <= port <= 65535:
            raise Failure(400, "port must be between 1 and 65535")
        sandbox.ports[port] = asked.get("label", "")
        return answer(self.shown(sandbox, port, await self.listening(sandbox)), 201)

    async def remove(self, request):
        sandbox = self.fake.sandboxes.find(request)
        sandbox.ports.pop(self.port(request), None)
        return web.Response(status=204)

    def port(self, request):
        text = request.match_info["port"]
        if not text.isdecimal() or not 1 <= int(text) <= 65535:
            raise Failure(400, "invalid port")
        return int(text)

    # ---- requests ----

    async def forward(self, request):
        if self.fake.defects.get("no_proxy"):
            return not_found()
        sandbox = await self.fake.sandboxes.use(request)
        port = self.port(request)
        if sandbox.status != "running":
            raise Failure(503, "sandbox not running")
        # What follows the port, percent-encoding and query as they are.
        marker = f"/proxy/{request.match_info['port']}"
        path = request.raw_path[request.raw_path.index(marker) + len(marker) :] or "/"
        url = aiohttp.client.URL(
            f"http://127.0.0.1:{port}{path if path[0] == '/' else '/' + path}", encoded=True
        )
        async with ends_with_client(request), self.session(sandbox) as session:
            try:
                upstream = await session.request(
                    request.method,
                    url,
                    headers=self.headers(request),
                    data=await self.body(request),
                    allow_redirects=False,
                    skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent", "Content-Type"),
                )
            except aiohttp.ClientError as error:
                raise Failure(502, self.reason(sandbox, port, error)) from None
            async with upstream:
                return await self.answer(request, upstream)

    def session(self, sandbox):
        if sandbox.connector is None:
            sandbox.connector = GuestConnector(sandbox.guest)
        return aiohttp.ClientSession(
            connector=sandbox.connector,
            connector_owner=False,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(),
        )

    def reason(self, sandbox, port, error):
        text = str(error)
        if "refused" in text or "unreachable" in text:
            text = f"dial tcp {sandbox.guest_ip}:{port}: connect: {text}"
        elif isinstance(error, aiohttp.ServerDisconnectedError):
            text = "EOF"
        return f"upstream: {text}"

    def headers(self, request):
        named = {word.strip().lower() for word in request.headers.get("Connection", "").split(",")}
        kept = [
            (name, text)
            for name, text in request.headers.items()
            if name.lower() not in NOT_FORWARDED | named
        ]
        broker = request.headers.get("X-Pandastack-Broker-Auth")
        if broker:
            kept.append(("Authorization", broker))
        kept.append(("X-Forwarded-For", request.remote or ""))
        return kept

    async def body(self, request):
        if not request.body_exists:
            return None
        return await request.read() if request.content_length is not None else request.content.iter_any()

    async def answer(self, request, upstream):
        response = self.fake.streamed(request, "proxy", status=upstream.status, reason=upstream.reason)
        for name, text in upstream.headers.items():
            if name.lower() not in HOP_BY_HOP:
                response.headers.add(name, text)
        await response.prepare(request)
        try:
            await self.copy(response, upstream.content)
            await response.write_eof()
        except aiohttp.ClientError:  # the guest's end broke: so does ours
            if request.transport is not None:
                request.transport.abort()
        return response

    async def copy(self, response, content):
        pause = self.fake.defects.get("proxy_flush_ms") / 1000
        while data := await content.readany():
            if pause:
                await asyncio.sleep(pause)
                data += content.read_nowait()
            await response.write(data)
