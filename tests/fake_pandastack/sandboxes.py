"""Sandboxes and their lifecycle: made, used, paused, hibernated, reaped, removed."""

import asyncio
import shutil
import signal

from aiohttp import web
from defects import no_capacity
from go_json import Failure, answer, struct
from guest import GuestError

from sandbox import DEFAULT_TTL, DELETED, FAILED, HIBERNATED, PAUSED, RUNNING, Sandbox

CREATE_LIMIT = 1 << 20  # bytes of a create's body that are read
CREATE_FIELDS = {
    "template": str,
    "from_snapshot": str,
    "cpu": int,
    "memory_mb": int,
    "disk_gb": int,
    "metadata": dict,
    "ttl_seconds": int,
    "persistent": bool,
    "volumes": list,
}


class Sandboxes:
    def __init__(self, fake):
        self.fake = fake
        self.all = {}
        self.made = 0

    def routes(self, router):
        router.add_post("/v1/sandboxes", self.create)
        router.add_get("/v1/sandboxes", self.list)
        one = "/v1/sandboxes/{id}"
        router.add_get(one, self.get)
        router.add_delete(one, self.delete)
        router.add_get(one + "/lifecycle", self.lifecycle)
        router.add_patch(one + "/lifecycle", self.set_lifecycle)
        router.add_post(one + "/pause", self.pause)
        router.add_post(one + "/resume", self.resume)
        for name in ("/hibernate", "/stop"):
            router.add_post(one + name, self.hibernate)
        for name in ("/wake", "/start"):
            router.add_post(one + name, self.wake)

    # ---- making and ending ----

    async def create(self, request):
        asked = await struct(request, "createReq", CREATE_FIELDS, CREATE_LIMIT)
        if asked.get("ttl_seconds", 0) < 0:
            raise Failure(500, "ttl_seconds must be non-negative")
        metadata = {
            name: text for name, text in asked.get("metadata", {}).items() if name not in ("kind", "app.id")
        }
        metadata["workspace"] = self.fake.workspace
        self.check_capacity(asked, request)
        try:
            if asked.get("from_snapshot"):
                sandbox = await self.fake.snapshots.restore(asked, metadata)
            else:
                sandbox = await self.from_template(asked, metadata)
        except (GuestError, OSError) as error:
            raise Failure(500, f"firecracker start: {error}") from None
        sandbox.ttl = asked.get("ttl_seconds", DEFAULT_TTL)
        sandbox.persistent = asked.get("persistent", False)
        return answer(sandbox.as_created(), 201)

    def check_capacity(self, asked, request):
        if self.fake.defects.get("no_compute"):
            raise (
                Failure(502, "no available compute node") if self.fake.defects.get("june") else no_capacity()
            )
        if self.fake.defects.take("no_memory", request):
            wanted = asked.get("memory_mb", 2048)
            raise Failure(
                507, f"insufficient host memory for sandbox: {wanted} MB requested, 512 MB available"
            )

    async def from_template(self, asked, metadata):
        name = asked.get("template", "")
        if not name:
            raise Failure(500, "either template or from_snapshot must be provided")
        template = self.fake.catalogue.template(name)
        for volume in asked.get("volumes", ()):
            wanted = volume.get("name", "") if isinstance(volume, dict) else ""
            if wanted not in self.fake.catalogue.volumes:
                raise Failure(500, f'volume "{wanted}": not found')
        sandbox = self.new(name, template["cpu"], template["memory_mb"], metadata, "", "snapshot-natid")
        await self.bring_up(sandbox)
        return sandbox

    def new(self, template, cpu, memory_mb, metadata, from_snapshot, mode):
        self.made += 1
        return Sandbox(self.made, template, cpu, memory_mb, metadata, from_snapshot, mode)

    async def bring_up(self, sandbox, disk=None, images=()):
        sandbox.used = self.fake.now()
        sandbox.hidden_answers = self.fake.defects.take_all("lost_lease")
        self.all[sandbox.id] = sandbox
        self.fake.counters.events["sandboxes_created"] += 1
        try:
            async with sandbox.moving:
                await sandbox.boot(self.fake, disk, images)
        except BaseException:
            await self.remove(sandbox, "not_started")
            raise

    async def remove(self, sandbox, why):
        """`why`: the event that is counted. Snapshots are none of its business."""
        if self.all.pop(sandbox.id, None) is None:
            return
        self.fake.counters.events[f"sandboxes_{why}"] += 1
        self.fake.kernels.forget(sandbox)
        async with sandbox.moving:
            sandbox.status = DELETED
            await sandbox.stop_guest()
        await asyncio.to_thread(shutil.rmtree, sandbox.directory, ignore_errors=True)

    async def fail(self, sandbox):
        """Its VM is gone, its row is not."""
        sandbox.status = FAILED
        self.fake.counters.events["sandboxes_failed"] += 1
        self.fake.kernels.forget(sandbox)
        await sandbox.stop_guest()

    def find(self, request):
        sandbox = self.all.get(request.match_info["id"])
        if sandbox is None:
            unscoped = self.fake.defects.get("unscoped") and request.method != "GET"
            raise Failure(404, "sandbox not found" if unscoped else "not found")
        if sandbox.hidden_answers > 0:
            sandbox.hidden_answers -= 1
            self.fake.counters.faults["lost_lease"] += 1
            raise Failure(404, "not found")
        if self.fake.defects.get("june"):
            sandbox.used = self.fake.now()  # every request counts
        return sandbox

    async def get(self, request):
        return answer(self.find(request).as_stored())

    async def list(self, request):
        shown = [sandbox.as_stored() for sandbox in reversed(self.all.values())]
        if self.fake.defects.get("unscoped"):
            return answer(shown or None)
        return answer(shown, newline=False)

    async def delete(self, request):
        sandbox = self.find(request)
        await self.remove(sandbox, "deleted")
        if self.fake.defects.get("cascade_delete") and not self.fake.defects.get("june"):
            self.fake.snapshots.delete_of(sandbox.id)
        return web.Response(status=204)

    # ---- the idle clock ----

    async def reap(self):
        now = self.fake.now()
        for sandbox in list(self.all.values()):
            if not sandbox.persistent and sandbox.status != "creating" and now - sandbox.used >= sandbox.ttl:
                await self.remove(sandbox, "reaped")

    async def lifecycle(self, request):
        return self.shown_lifecycle(self.find(request))

    def shown_lifecycle(self, sandbox):
        idle = int(self.fake.now() - sandbox.used)
        return answer({"ttl_seconds": sandbox.ttl, "persistent": sandbox.persistent, "idle_seconds": idle})

    async def set_lifecycle(self, request):
        sandbox = await self.use(request)
        asked = await struct(request, "lifecycleReq", {"ttl_seconds": int, "persistent": bool})
        if asked.get("ttl_seconds", 0) < 0:
            raise Failure(400, "ttl_seconds must be non-negative")
        sandbox.ttl = asked.get("ttl_seconds", sandbox.ttl)
        sandbox.persistent = asked.get("persistent", sandbox.persistent)
        return self.shown_lifecycle(sandbox)

    # ---- pause, hibernate ----

    async def pause(self, request):
        sandbox = self.find(request)
        sandbox.used = self.fake.now()
        async with sandbox.moving:
            if sandbox.status != RUNNING:
                raise Failure(500, "sandbox not found or not running")
            sandbox.guest.signal_all(signal.SIGSTOP)
            sandbox.status = PAUSED
            sandbox.resumed.clear()
        return web.Response(status=204)

    async def resume(self, request):
        sandbox = self.find(request)
        sandbox.used = self.fake.now()
        async with sandbox.moving:
            if sandbox.status not in (PAUSED, RUNNING):
                raise Failure(500, "sandbox not found")
            sandbox.guest.signal_all(signal.SIGCONT)
            sandbox.status = RUNNING
            sandbox.resumed.set()
        return web.Response(status=204)

    async def hibernate(self, request):
        sandbox = self.find(request)
        async with sandbox.moving:
            if sandbox.status not in (RUNNING, PAUSED):
                raise Failure(500, "sandbox not found or not running")
            await self.put_to_sleep(sandbox)
        return answer({"status": HIBERNATED})

    async def put_to_sleep(self, sandbox):
        try:
            with sandbox.continued():
                sandbox.images = await self.fake.memory.freeze(sandbox.guest, sandbox.directory / "memory")
        except GuestError as error:
            raise Failure(500, f"hibernate: {error}") from None
        sandbox.status = HIBERNATED
        sandbox.resumed.clear()
        await sandbox.stop_guest()

    async def wake(self, request):
        sandbox = self.find(request)
        if sandbox.status != HIBERNATED:
            raise Failure(500, "sandbox already running")
        await self.awaken(sandbox)
        return answer({"status": RUNNING})

    async def awaken(self, sandbox):
        async with sandbox.moving:
            if sandbox.status == DELETED:
                raise Failure(404, "not found")
            if sandbox.status != HIBERNATED:
                return
            if self.fake.defects.take("wake_fails"):
                raise Failure(500, "wake resume: snapshot load failed")
            try:
                await sandbox.start_guest(self.fake, sandbox.images)
            except GuestError as error:
                raise Failure(500, f"wake resume: {error}") from None
            sandbox.images = []
            await asyncio.to_thread(shutil.rmtree, sandbox.directory / "memory", ignore_errors=True)

    async def use(self, request):
        """The sandbox of a request that uses its guest: refreshes the clock, wakes it up."""
        sandbox = self.find(request)
        sandbox.used = self.fake.now()
        if sandbox.status == HIBERNATED:
            try:
                await self.awaken(sandbox)
            except Failure as failure:
                raise Failure(503, f"auto-wake: {failure.message}") from None
        return sandbox

    async def guest_for(self, request):
        """The same, for commands and files, which a paused sandbox refuses (or, in June, lets wait)."""
        sandbox = await self.use(request)
        hangs = self.fake.defects.get("june") or not self.fake.defects.get("paused_409")
        if sandbox.status == PAUSED and hangs:
            await request.read()
            await sandbox.resumed.wait()
        sandbox.check_running()
        return sandbox, sandbox.guest
