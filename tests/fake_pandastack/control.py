"""/_fake/: for tests, not part of the API; no key needed, and none of it is counted.

GET  /_fake/counters     counters.py, and what there is now
GET  /_fake/defects      the switches as they are
POST /_fake/defects      {"name": value, ...}; {"reset": true} first puts all back
POST /_fake/tick         {"seconds": 60}: the idle clock goes on by that, and the reaper looks
POST /_fake/expire       {"id": ...}, or nothing: reaps that sandbox, or all, now
POST /_fake/agent-restart
"""

from aiohttp import web
from defects import Unknown


class Control:
    def __init__(self, fake):
        self.fake = fake

    def routes(self, router):
        router.add_get("/_fake/counters", self.counters)
        router.add_get("/_fake/defects", self.defects)
        router.add_post("/_fake/defects", self.set_defects)
        router.add_post("/_fake/tick", self.tick)
        router.add_post("/_fake/expire", self.expire)
        router.add_post("/_fake/agent-restart", self.agent_restart)
        router.add_post("/_fake/reset", self.reset)

    async def body(self, request):
        return await request.json() if request.can_read_body else {}

    async def counters(self, request):
        return web.json_response(self.fake.counters.as_json() | self.fake.now_there())

    async def defects(self, request):
        return web.json_response(self.fake.defects.as_json())

    async def set_defects(self, request):
        wanted = await self.body(request)
        if wanted.pop("reset", False):
            self.fake.defects.reset()
        try:
            for name, value in wanted.items():
                self.fake.defects.set(name, value)
        except (Unknown, ValueError, IndexError, TypeError) as error:
            return web.json_response({"error": str(error)}, status=400)
        return web.json_response(self.fake.defects.as_json())

    async def tick(self, request):
        self.fake.ahead += float((await self.body(request)).get("seconds", 0))
        await self.fake.look()
        return web.json_response(self.fake.now_there())

    async def expire(self, request):
        wanted = (await self.body(request)).get("id")
        for sandbox in list(self.fake.sandboxes.all.values()):
            if wanted in (None, sandbox.id):
                await self.fake.sandboxes.remove(sandbox, "reaped")
        return web.json_response(self.fake.now_there())

    async def agent_restart(self, request):
        await self.fake.agent_restart()
        return web.json_response(self.fake.now_there())

    async def reset(self, request):
        await self.fake.reset()
        return web.json_response(self.fake.now_there())
