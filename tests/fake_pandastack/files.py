"""Files of a guest, by the commands that the agent runs in it."""

import asyncio

from aiohttp import web
from go_json import Failure, answer
from guest import GuestError

LIMIT = 32 << 20  # bytes of an upload
PIECE = 64 << 10
LIST = "%f\\t%y\\t%s\\t%T@\\0"
NOT_HERE = "file does not exist"


class Files:
    def __init__(self, fake):
        self.fake = fake

    def routes(self, router):
        one = "/v1/sandboxes/{id}/fs"
        router.add_get(one, self.read)
        router.add_put(one, self.write)
        router.add_delete(one, self.delete)
        router.add_get(one + "/dir", self.list)
        router.add_get(one + "/stat", self.stat)

    def path(self, request):
        path = request.query.get("path", "")
        if not path.startswith("/"):
            raise Failure(500, f'path must be absolute, got "{path}"')
        return path

    async def using(self, request):
        _, guest = await self.fake.sandboxes.guest_for(request)
        path = self.path(request)
        if self.fake.defects.take("warmup_errors", request):
            raise Failure(500, "dial tcp 10.200.0.6:22: connect: connection refused")
        return guest, path

    async def looking(self, request):
        """Without use: does not wake it."""
        sandbox = self.fake.sandboxes.find(request)
        sandbox.check_running()
        return sandbox.guest, self.path(request)

    async def command(self, guest, words, data=None):
        try:
            process = await guest.run(words, "/", stdin=data is not None)
        except GuestError as error:
            raise Failure(500, str(error)) from None
        if data is not None:
            await feed(process.stdin, data)
        output, errors = await asyncio.gather(process.stdout.read(), process.stderr.read())
        return await process.exit_code(), output, errors.decode(errors="replace").strip()

    async def read(self, request):
        guest, path = await self.using(request)
        code, output, errors = await self.command(guest, ["/bin/cat", path])
        if code != 0:
            raise Failure(
                500 if self.fake.defects.get("june") else 404, f"read {path}: exit {code}: {shown(errors)}"
            )
        return web.Response(body=output, headers={"Content-Type": "application/octet-stream"})

    async def write(self, request):
        guest, path = await self.using(request)
        data = bytearray()
        async for piece in request.content.iter_chunked(PIECE):
            data += piece
            if len(data) > LIMIT:
                raise Failure(400, "http: request body too large")
            await self.fake.defects.slow_upload(len(piece))
            self.fake.defects.cut_upload(request, len(data))
        words = ["/bin/sh", "-c", 'mkdir -p "$(dirname "$1")" && cat > "$1"', "sh", path]
        code, _, errors = await self.command(guest, words, data)
        if code != 0:
            raise Failure(500, f"write {path}: exit {code}: {shown(errors)}")
        self.fake.counters.events["uploads"] += 1
        return answer({"bytes": len(data), "path": path})

    async def delete(self, request):
        guest, path = await self.using(request)
        code, _, errors = await self.command(guest, ["/bin/rm", "-rf", path])
        if code != 0:
            raise Failure(500, f"delete {path}: exit {code}: {errors}")
        return web.Response(status=204)

    async def list(self, request):
        guest, path = await self.looking(request)
        words = ["/usr/bin/find", path, "-mindepth", "1", "-maxdepth", "1", "-printf", LIST]
        code, output, errors = await self.command(guest, words)
        if code != 0:
            raise Failure(500, f"list {path}: exit {code}: {shown(errors)}")
        return answer({"entries": entries(output) or None, "path": path})

    async def stat(self, request):
        sandbox = self.fake.sandboxes.find(request)
        if sandbox.guest is None:
            raise Failure(404, "sandbox not running")
        words = ["/usr/bin/find", request.query.get("path", ""), "-maxdepth", "0", "-printf", LIST]
        code, output, _ = await self.command(sandbox.guest, words)
        if code != 0 or not output:
            raise Failure(404, NOT_HERE)
        return answer(entries(output)[0])


async def feed(stdin, data):
    try:
        stdin.write(bytes(data))
        await stdin.drain()
    except ConnectionError:
        pass  # what reads it says why
    stdin.close()


def shown(errors):
    return errors.replace("/bin/", "").replace("/usr/bin/", "")


def entries(output):
    found = []
    for line in output.decode(errors="replace").split("\0")[:-1]:
        name, kind, size, time = line.rsplit("\t", 3)
        found.append(
            {"name": name, "is_dir": kind == "d", "size": int(size), "mode": kind, "mtime": int(float(time))}
        )
    return found
