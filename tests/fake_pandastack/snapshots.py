"""Snapshots, restore and forks."""

import asyncio
import shutil
import time
import uuid

from go_json import Failure, answer, by_key, not_found, struct, time_nanoseconds, time_seconds
from guest import GuestError

LIFE = 7 * 24 * 3600  # seconds of a snapshot without its source
MOST = 16  # forks at a time


class Snapshot:
    def __init__(self, sandbox, directory, now):
        self.id = str(uuid.uuid4())
        self.sandbox_id, self.template = sandbox.id, sandbox.template
        self.directory = directory / self.id
        self.created = time.time_ns()
        self.expires = now + LIFE
        self.images = []
        self.registered = False

    def as_created(self):
        place = f"/var/lib/pandastack/snapshots/{self.id}"
        return {
            "id": self.id,
            "sandbox_id": self.sandbox_id,
            "created_at": time_nanoseconds(self.created),
            "mem_path": f"{place}/vm.mem",
            "state_path": f"{place}/vm.state",
        }

    def as_registered(self, workspace):
        return {
            "id": self.id,
            "workspace": workspace,
            "sandbox_id": self.sandbox_id,
            "template": self.template,
            "created_at": time_seconds(self.created),
        }


class Snapshots:
    def __init__(self, fake):
        self.fake = fake
        self.all = {}

    def routes(self, router):
        one = "/v1/sandboxes/{id}"
        router.add_post(one + "/snapshots", self.create)
        router.add_post(one + "/fork", self.fork)
        router.add_post(one + "/fork-tree", self.fork_tree)
        router.add_post(one + "/promote", self.promote)
        router.add_get("/v1/snapshots", self.list)
        router.add_get("/v1/snapshots/{snapshot}", self.get)
        router.add_delete("/v1/snapshots/{snapshot}", self.delete)

    # ---- taking and restoring ----

    async def create(self, request):
        sandbox = await self.fake.sandboxes.use(request)
        await asyncio.sleep(self.fake.defects.get("slow_snapshot"))
        snapshot = await self.take(sandbox)
        return answer(snapshot.as_created(), 201)

    async def take(self, sandbox):
        async with sandbox.moving:
            if sandbox.guest is None:
                raise Failure(500, "sandbox not found")
            snapshot = Snapshot(sandbox, self.fake.directory / "snapshots", self.fake.now())
            try:
                with sandbox.continued():
                    snapshot.images = await self.fake.memory.freeze(sandbox.guest, snapshot.directory)
                    await self.fake.memory.copy_disk(sandbox.directory, snapshot.directory)
            except GuestError as error:
                shutil.rmtree(snapshot.directory, ignore_errors=True)
                raise Failure(500, f"snapshot create: {error}") from None
            snapshot.registered = not self.without_registry()
            self.all[snapshot.id] = snapshot
            self.fake.counters.events["snapshots_created"] += 1
            return snapshot

    async def restore(self, asked, metadata):
        if asked.get("volumes"):
            refusal = "volumes cannot be attached when restoring from a snapshot; create a fresh sandbox with volumes instead"
            raise Failure(500, refusal)
        snapshot = self.all.get(asked["from_snapshot"])
        if snapshot is None and self.fake.defects.get("object_store"):
            raise Failure(500, f"fetch snapshot {asked['from_snapshot']} from gcs: object not found")
        template = asked.get("template", "") or (snapshot.template if snapshot else "")
        if not template:
            raise Failure(500, "template required (either explicit or via snapshot meta)")
        if snapshot is None:
            raise Failure(500, "firecracker start: snapshot load failed")
        named = asked.get("template", "") if self.fake.defects.get("june") else template
        size = (asked.get("cpu", 1), asked.get("memory_mb", 256))
        sandbox = self.fake.sandboxes.new(named, *size, metadata, snapshot.id, "snapshot")
        disk = None if self.fake.defects.get("june") else snapshot.directory  # June: over a fresh disk
        try:
            await self.fake.sandboxes.bring_up(sandbox, disk, snapshot.images)
        except GuestError as error:
            raise Failure(500, f"snapshot restore: {error}") from None
        return sandbox

    # ---- the registry ----

    def without_registry(self):
        return self.fake.defects.get("june") or self.fake.defects.get("no_postgres")

    async def list(self, request):
        if self.without_registry():
            return not_found()
        of = request.query.get("sandbox_id")
        found = [
            each
            for each in reversed(self.all.values())
            if each.registered and of in (None, "", each.sandbox_id)
        ]
        return answer({"snapshots": [each.as_registered(self.fake.workspace) for each in found[:500]]})

    async def get(self, request):
        if self.without_registry():
            return not_found()
        return answer(self.registered(request).as_registered(self.fake.workspace))

    def registered(self, request):
        snapshot = self.all.get(request.match_info["snapshot"])
        if snapshot is None or not snapshot.registered:
            raise Failure(404, "not found")
        return snapshot

    async def delete(self, request):
        if self.without_registry():
            return not_found()
        snapshot = self.registered(request)
        self.remove(snapshot, "deleted")
        return answer({"deleted": snapshot.id})

    def remove(self, snapshot, why):
        if self.all.pop(snapshot.id, None):
            self.fake.counters.events[f"snapshots_{why}"] += 1
            shutil.rmtree(snapshot.directory, ignore_errors=True)

    def delete_of(self, sandbox_id):
        """A deleted sandbox takes its snapshots along; a reaped one does not."""
        for snapshot in [each for each in self.all.values() if each.sandbox_id == sandbox_id]:
            self.remove(snapshot, "cascaded")

    def expire(self):
        sources = self.fake.sandboxes.all
        for snapshot in list(self.all.values()):
            if self.fake.now() >= snapshot.expires and snapshot.sandbox_id not in sources:
                self.remove(snapshot, "expired")

    # ---- forks ----

    async def fork(self, request):
        parent = await self.fake.sandboxes.use(request)
        asked = await struct(request, "forkReq", {"count": int, "mode": str}, may_be_empty=True)
        count = asked.get("count", 1) or 1
        if count > MOST:
            raise Failure(500, f"fork count capped at {MOST}")
        warm = asked.get("mode") == "warm" or request.query.get("warm") == "1"
        snapshot = await self.take(parent)
        children = []
        for _ in range(1 if warm else count):
            child = self.child(parent, snapshot, {})
            try:
                self.check_child(request)
                await self.fake.sandboxes.bring_up(child, snapshot.directory, snapshot.images if warm else ())
                children.append(child.id)
            except GuestError:
                pass  # it is just not in the list
        if warm:
            await self.fake.sandboxes.remove(parent, "consumed")
        else:
            snapshot.images = []  # of the disk only
        made = {"parent_id": parent.id, "snapshot_id": snapshot.id, "children": children}
        return answer(made | {"at": time_nanoseconds(time.time_ns())}, 201)

    def check_child(self, request):
        if self.fake.defects.take("failed_child", request):
            raise GuestError("snap load: as asked for")

    def child(self, parent, snapshot, metadata):
        metadata = by_key(metadata | {"workspace": self.fake.workspace})
        new = self.fake.sandboxes.new
        return new(parent.template, parent.cpu, parent.memory_mb, metadata, snapshot.id, "snapshot")

    async def fork_tree(self, request):
        parent = await self.fake.sandboxes.use(request)
        asked = await struct(request, "forkTreeReq", {"count": int, "metadata": dict}, may_be_empty=True)
        count = asked.get("count", 2) or 2
        if count > MOST:
            raise Failure(500, f"fork-tree count capped at {MOST}")
        if parent.guest is None:
            raise Failure(500, "parent sandbox not found or not running")
        snapshot = await self.take(parent)
        tree = str(uuid.uuid4())
        children, errors = [], []
        for index in range(count):
            role = {"fork_tree_id": tree, "fork_tree_role": "child", "fork_parent_id": parent.id}
            child = self.child(
                parent, snapshot, asked.get("metadata", {}) | role | {"fork_index": str(index)}
            )
            try:
                self.check_child(request)
                await self.fake.sandboxes.bring_up(child, snapshot.directory, snapshot.images)
                shown = {"id": child.id, "guest_ip": child.guest_ip, "boot_ms": child.boot_ms}
                children.append(shown | {"boot_mode": child.boot_mode})
            except GuestError as error:
                errors.append({"index": index, "err": f"snapshot restore: {error}"})
        made = {"tree_id": tree, "parent_id": parent.id, "snapshot_id": snapshot.id, "children": children}
        made["at"] = time_nanoseconds(time.time_ns())
        return answer(made | ({"errors": errors} if errors else {}), 201)

    async def promote(self, request):
        winner = await self.fake.sandboxes.use(request)
        asked = await struct(request, "promoteReq", {"tree_id": str, "cleanup_siblings": bool})
        tree = asked.get("tree_id")
        if not tree:
            raise Failure(400, "tree_id required")
        deleted = []
        if asked.get("cleanup_siblings"):
            for sandbox in list(self.fake.sandboxes.all.values()):
                if sandbox is not winner and sandbox.metadata.get("fork_tree_id") == tree:
                    await self.fake.sandboxes.remove(sandbox, "deleted")
                    deleted.append(sandbox.id)
        return answer({"deleted": deleted, "failures": {}, "tree_id": tree, "winner": winner.id})
