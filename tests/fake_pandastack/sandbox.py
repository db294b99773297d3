"""One sandbox: its row, and its guest."""

import asyncio
import contextlib
import signal
import time
import uuid

import guest_root
from go_json import Failure, by_key, time_nanoseconds, time_seconds
from guest import Guest, GuestError

DEFAULT_TTL = 300  # seconds without use
RUNNING, PAUSED, HIBERNATED, FAILED, DELETED = "running", "paused", "hibernated", "failed", "deleted"


class Sandbox:
    def __init__(self, number, template, cpu, memory_mb, metadata, from_snapshot, mode):
        self.id = str(uuid.uuid4())
        self.number = number
        self.template, self.cpu, self.memory_mb = template, cpu, memory_mb
        self.metadata, self.from_snapshot, self.boot_mode = metadata, from_snapshot, mode
        self.status = "creating"
        self.boot_ms = 0
        self.created = time.time_ns()
        self.ttl, self.persistent = DEFAULT_TTL, False
        self.used = 0.0  # when, by the fake's clock
        self.guest = None
        self.directory = None
        self.images = []  # of a hibernated one: memory.Image
        self.ports = {}  # number -> label
        self.connector = None  # proxy.py's
        self.moving = asyncio.Lock()  # pausing, freezing, waking: one at a time
        self.resumed = asyncio.Event()
        self.hidden_answers = 0  # lost_lease: so many 404s

    @property
    def guest_ip(self):
        return f"10.200.{self.number // 64}.{self.number % 64 * 4 + 2}"

    def common(self):
        return {
            "id": self.id,
            "template": self.template,
            "cpu": self.cpu,
            "memory_mb": self.memory_mb,
            "status": self.status,
            "guest_ip": self.guest_ip,
            "host_tap": f"ns-{self.number:05}",
            "mac": "06:00:ac:10:00:02",
            "vsock_cid": 0,
        }

    def as_created(self):
        """The struct, with secrets as they were given."""
        shown = self.common() | {"metadata": by_key(self.metadata)}
        if self.from_snapshot:
            shown["from_snapshot"] = self.from_snapshot
        created = time_nanoseconds(self.created)
        return shown | {"boot_ms": self.boot_ms, "boot_mode": self.boot_mode, "created_at": created}

    def as_stored(self):
        """The map that the store makes of its row."""
        metadata = {name: text for name, text in self.metadata.items() if not name.startswith("secret.")}
        shown = self.common() | {"metadata": metadata, "from_snapshot": self.from_snapshot}
        return by_key(
            shown
            | {"boot_ms": self.boot_ms, "boot_mode": self.boot_mode, "created_at": time_seconds(self.created)}
        )

    # ---- its guest ----

    async def boot(self, fake, disk=None, images=()):
        """From a template's disk, or from a copy of `disk`; then `images` go on in it."""
        start = time.monotonic()
        self.directory = fake.directory / "sandboxes" / self.id
        if disk is None:
            guest_root.make(self.directory, fake.python)
        else:
            await fake.memory.copy_disk(disk, self.directory)
        await self.start_guest(fake, images)
        self.boot_ms = max(1, int((time.monotonic() - start) * 1000))

    async def start_guest(self, fake, images=()):
        self.guest = Guest(self.directory, fake.python, not fake.defects.get("no_ipython"))
        await self.guest.start()
        try:
            for image in images:
                await fake.memory.thaw(self.guest, image)
        except GuestError:
            await self.guest.stop()
            raise
        self.status = RUNNING
        self.resumed.set()

    async def stop_guest(self):
        if self.connector:
            await self.connector.close()
            self.connector = None
        if self.guest:
            await self.guest.stop()
            self.guest = None

    @contextlib.contextmanager
    def continued(self):
        """What is paused cannot be frozen: it goes on meanwhile."""
        if self.status == PAUSED:
            self.guest.signal_all(signal.SIGCONT)
        try:
            yield
        finally:
            if self.status == PAUSED:
                self.guest.signal_all(signal.SIGSTOP)

    def check_running(self):
        if self.status != RUNNING or self.guest is None:
            raise Failure(409, "sandbox not running (paused or hibernated) — resume/wake it first")
