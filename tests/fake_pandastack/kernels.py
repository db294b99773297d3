"""REPL sessions: the vendor's persistent Python kernels."""

import asyncio
import json
import secrets
import signal
import time
from pathlib import Path

from aiohttp import web
from go_json import (
    STRUCT_NAMES,
    Failure,
    answer,
    as_any,
    by_key,
    decoding_error,
    duration,
    struct,
    time_nanoseconds,
)
from guest import GuestError

SCRIPT = Path(__file__).with_name("kernel_script.py")
DEFAULT_LIMIT = 30_000  # ms
IDLE = 30 * 60  # seconds since the last cell began


def go_quoted(data):
    """fmt's %q."""
    text = data.decode("utf-8", "replace")
    shown = "".join(json.dumps(each, ensure_ascii=False)[1:-1] for each in text)
    return f'"{shown}"'


class Kernel:
    def __init__(self, sandbox, process, now):
        self.id = secrets.token_hex(8)
        self.sandbox, self.process = sandbox, process
        self.created = time.time_ns()
        self.cells, self.began = 0, now
        self.turn = asyncio.Lock()
        self.waiting = []  # for an answer; the newest gets it, so that one that timed out spoils the next

    def shown(self):
        shown = {"id": self.id, "sandbox_id": self.sandbox.id, "language": "python"}
        return by_key(shown | {"created_at": time_nanoseconds(self.created)})

    async def pump(self):
        while line := await self.process.stdout.readline():
            for waiter in reversed(self.waiting):
                if not waiter.done():
                    waiter.set_result(line)
                    break
            self.waiting = [waiter for waiter in self.waiting if not waiter.done()]
        for waiter in self.waiting:
            if not waiter.done():
                waiter.set_exception(Failure(500, "EOF"))
        self.waiting = None

    async def ask(self, code, milliseconds):
        """The kernel's line for a cell."""
        if self.waiting is None:
            raise Failure(500, "EOF")
        waiter = asyncio.get_running_loop().create_future()
        self.waiting.append(waiter)
        data = code.encode("utf-8", "replace")
        try:
            self.process.stdin.write(f"{len(data)}\n".encode() + data)
            await self.process.stdin.drain()
        except ConnectionError:
            raise Failure(500, "EOF") from None
        try:
            return await asyncio.wait_for(asyncio.shield(waiter), milliseconds / 1000)
        except asyncio.TimeoutError:
            raise Failure(500, f"cell timeout after {duration(milliseconds)}") from None


class Kernels:
    def __init__(self, fake):
        self.fake = fake
        self.all = {}  # id -> Kernel: the agent's memory

    def routes(self, router):
        one = "/v1/sandboxes/{id}/repl/sessions"
        router.add_post(one, self.create)
        router.add_get(one, self.list)
        router.add_post(one + "/{session}/run", self.run)
        router.add_delete(one + "/{session}", self.delete)

    async def create(self, request):
        sandbox = await self.fake.sandboxes.use(request)
        asked = await struct(request, "sessionReq", {"language": str}, may_be_empty=True)
        if asked.get("language", "") not in ("", "python", "py"):
            raise Failure(400, "persistent sessions support python only for now")
        await sandbox.resumed.wait()  # nobody looks whether it is paused
        if self.fake.defects.take("warmup_errors", request):
            raise Failure(500, "start kernel: dial tcp 10.200.0.6:22: connect: connection refused")
        try:
            process = await self.start(sandbox.guest)
        except GuestError as error:
            raise Failure(500, f"start kernel: {error}") from None
        kernel = Kernel(sandbox, process, self.fake.now())
        kernel.pumping = asyncio.create_task(kernel.pump())
        self.all[kernel.id] = kernel
        self.fake.counters.events["kernels_created"] += 1
        return answer(kernel.shown(), 201)

    async def start(self, guest):
        (guest.directory / "root/tmp/fcs_pykernel.py").write_bytes(SCRIPT.read_bytes())
        words = "exec python3 -u /tmp/fcs_pykernel.py"
        words += "" if self.fake.defects.get("unicode_hang") else " bytes"
        words += "" if self.fake.defects.get("fd1_corruption") else " apart"
        process = await guest.run(["/bin/bash", "-c", words], stdin=True)
        while line := await process.stdout.readline():
            if line == b"__FCS_READY__\n":
                return process
        raise GuestError("kernel banner: EOF")

    def find(self, request):
        kernel = self.all.get(request.match_info["session"])
        if kernel is None or kernel.sandbox.id != request.match_info["id"]:
            raise Failure(404, "session not found")
        return kernel

    async def list(self, request):
        sandbox = self.fake.sandboxes.find(request)
        shown = [by_key(kernel.shown() | {"cells": kernel.cells}) for kernel in self.of(sandbox)]
        return answer(shown)

    def of(self, sandbox):
        return [kernel for kernel in self.all.values() if kernel.sandbox is sandbox]

    async def run(self, request):
        await self.fake.sandboxes.use(request)
        kernel = self.find(request)
        asked = await struct(request, "runReq", {"code": str, "timeout_ms": int})
        if not asked.get("code"):
            raise Failure(400, "code required")
        limit = asked.get("timeout_ms", 0)
        limit = limit if limit > 0 else DEFAULT_LIMIT
        start = time.monotonic()
        async with kernel.turn:  # its time limit does not run yet
            kernel.cells += 1
            kernel.began = self.fake.now()
            self.fake.counters.events["cells"] += 1
            if self.fake.defects.take("kill_kernel", request):
                kernel.process.kill(signal.SIGKILL)
                await kernel.process.exit_code()
            line = await kernel.ask(asked["code"], limit)
        return answer(self.shown_result(line, int((time.monotonic() - start) * 1000)))

    def shown_result(self, line, milliseconds):
        wrong = decoding_error(line)
        value = None if wrong else json.loads(line)
        if not wrong and not isinstance(value, dict):
            wrong = f"json: cannot unmarshal {STRUCT_NAMES[type(value)]} into Go value of type api.cellResult"
        if wrong:
            raise Failure(500, f"decode kernel response: {wrong} (got {go_quoted(line)})")
        result = {
            "duration_ms": milliseconds,
            "exit": value.get("exit", 0),
            "results": value.get("results") or [],
        }
        result |= {"stderr": value.get("stderr", ""), "stdout": value.get("stdout", "")}
        result["results"] = as_any(result["results"])
        if self.fake.defects.get("june"):  # the repr of the value in stdout instead
            for bundle in result.pop("results"):
                result["stdout"] += bundle["text/plain"] + "\n" if "text/plain" in bundle else ""
        return result

    async def delete(self, request):
        self.fake.sandboxes.find(request)
        kernel = self.find(request)
        self.close(kernel)
        return web.Response(status=204)

    def close(self, kernel):
        """Its channel: a busy one notices when it next touches its pipes."""
        self.all.pop(kernel.id, None)
        kernel.pumping.cancel()
        kernel.process.close()

    def forget(self, sandbox):
        for kernel in self.of(sandbox):
            self.close(kernel)

    def expire(self):
        for kernel in list(self.all.values()):
            if self.fake.now() - kernel.began > IDLE:
                self.close(kernel)

    def restart(self):
        for kernel in list(self.all.values()):
            self.close(kernel)
