"""Commands in a guest: exec, exec/stream, exec/ws and one-shot code."""

import asyncio
import json
import shlex
import signal

from aiohttp import WSMsgType, web
from go_json import Failure, answer, encode, struct
from guest import GuestError
from streamed import ends_with_client

CHUNK = 4096  # bytes of a stream's event
NO_STATUS = "wait: remote command exited without exit status or exit signal"
STREAM_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
LANGUAGES = {
    "python": "python3",
    "py": "python3",
    "node": "node",
    "js": "node",
    "bash": "bash",
    "sh": "sh",
    "ruby": "ruby",
}


def as_text(data):
    return data.decode("utf-8", "replace")


class Commands:
    def __init__(self, fake):
        self.fake = fake

    def routes(self, router):
        one = "/v1/sandboxes/{id}"
        router.add_post(one + "/exec", self.run)
        router.add_post(one + "/exec/stream", self.stream)
        router.add_get(one + "/exec/ws", self.websocket)
        router.add_post(one + "/repl", self.one_shot)
        router.add_get("/v1/repl/languages", self.languages)

    async def start(self, guest, command, request):
        if self.fake.defects.take("warmup_errors", request):
            raise Failure(500, "dial tcp 10.200.0.6:22: connect: connection refused")
        self.fake.counters.events["execs"] += 1
        try:
            return await guest.shell(command)
        except GuestError as error:
            raise Failure(500, str(error)) from None

    async def finish(self, guest, command, request):
        """Runs it; its stdout, stderr and exit code. Ends with its pipes, as an SSH channel does."""
        process = await self.start(guest, command, request)
        output, errors = await asyncio.gather(process.stdout.read(), process.stderr.read())
        code = await process.exit_code()
        if code is None:
            raise Failure(500, NO_STATUS)
        return as_text(output), as_text(errors), code

    async def command(self, request):
        _, guest = await self.fake.sandboxes.guest_for(request)
        asked = await struct(request, "execReq", {"cmd": str, "timeout_seconds": int})
        if not asked.get("cmd"):
            raise Failure(400, "cmd required")
        return guest, asked["cmd"]

    async def run(self, request):
        guest, command = await self.command(request)
        if self.fake.defects.take("duplicated_exec", request):  # vsock broke after it had run: again by SSH
            await self.finish(guest, command, request)
        output, errors, code = await self.finish(guest, command, request)
        return answer({"stdout": output, "stderr": errors, "exit_code": code})

    async def stream(self, request):
        guest, command = await self.command(request)
        if self.fake.defects.take("duplicated_exec", request):
            await self.finish(guest, command, request)
        process = await self.start(guest, command, request)
        response = self.fake.streamed(request, headers=STREAM_HEADERS)
        try:
            async with ends_with_client(request):
                await response.prepare(request)
                forward = [
                    self.forward(response, name, getattr(process, name)) for name in ("stdout", "stderr")
                ]
                await asyncio.gather(*forward)
                code = await process.exit_code()
                if code is None:
                    await self.event(response, "error", {"error": NO_STATUS})
                else:
                    await self.event(response, "exit", {"exit_code": code})
                await response.write_eof()
        finally:
            process.end(signal.SIGTERM)
        return response

    async def forward(self, response, name, stream):
        while data := await stream.read(CHUNK):
            await self.event(response, name, {"chunk": as_text(data)})

    async def event(self, response, name, value):
        await response.write(f"event: {name}\ndata: {encode(value)}\n\n".encode())

    # ---- many commands over one WebSocket ----

    async def websocket(self, request):
        _, guest = await self.fake.sandboxes.guest_for(request)
        socket = web.WebSocketResponse(heartbeat=20, protocols=())
        await socket.prepare(request)
        running = {}
        async for message in socket:
            if message.type != WSMsgType.TEXT:
                continue
            try:
                asked = json.loads(message.data)
            except ValueError:
                continue
            name = asked.get("id", "")
            if asked.get("cancel"):
                if name in running:
                    running[name].cancel()
            else:
                running[name] = asyncio.create_task(self.answer_on(socket, guest, asked, request))
                await asyncio.sleep(0)  # begun, it has an answer, even if it is cancelled at once
        for task in running.values():
            task.cancel()
        return socket

    async def answer_on(self, socket, guest, asked, request):
        name = asked.get("id", "")
        process = None

        async def send(message):
            await socket.send_str(encode({"id": name} | message))

        async def forward(stream, of):
            while data := await of.read(CHUNK):
                await send({"stream": stream, "data": as_text(data)})

        try:
            process = await self.start(guest, asked.get("cmd", ""), request)
            async with asyncio.timeout(asked.get("timeout_seconds") or None):
                await asyncio.gather(forward("stdout", process.stdout), forward("stderr", process.stderr))
                await send({"exit": await process.exit_code()})
        except TimeoutError:
            process.kill(signal.SIGKILL)
            await send({"error": "context deadline exceeded"})
        except Failure as failure:
            await send({"error": failure.message})
        except asyncio.CancelledError:
            if process:
                process.kill(signal.SIGKILL)
            if not socket.closed:
                await send({"error": "context canceled"})
        except ConnectionError:
            process.kill(signal.SIGKILL)

    # ---- one-shot code ----

    async def one_shot(self, request):
        _, guest = await self.fake.sandboxes.guest_for(request)
        asked = await struct(request, "replReq", {"language": str, "code": str})
        language, code = asked.get("language", ""), asked.get("code", "")
        if language not in LANGUAGES:
            raise Failure(400, f"unsupported language: {language}")
        if "__FCS_EOF__" in code:
            raise Failure(400, "code must not contain __FCS_EOF__")
        program = shlex.quote(LANGUAGES[language])
        here = f"{program} - <<'__FCS_EOF__'\n{code}\n__FCS_EOF__\n"
        output, errors, status = await self.finish(guest, here, request)
        return answer({"exit_code": status, "language": language, "stderr": errors, "stdout": output})

    async def languages(self, request):
        return answer(list(set(LANGUAGES)))
