#!/usr/bin/env python3
"""with_server.py SERVER INTERPRETER SCRIPT [ARGUMENT...]: runs a client's test against a server of its own.

The script gets the server's URL (as "http://127.0.0.1:PORT"), a second URL, and its arguments. The
first one leads through a relay, and a request to the second one cuts every connection of the relay,
as a network does that fails. Ends with the script's status, or with 1 if the server did not stop well.
"""

import asyncio
import os
import re
import signal
import sys
import tempfile

SCRIPT_LIMIT = 400  # seconds; with sanitizers, on a busy machine
START_LIMIT = 60
STOP_LIMIT = 60
SKIPPED = 77  # to ctest


class Relay:
    def __init__(self, port):
        self.port = port
        self.open = set()

    async def serve(self):
        relay = await asyncio.start_server(self.pass_on, "127.0.0.1", 0)
        control = await asyncio.start_server(self.cut, "127.0.0.1", 0)
        return [f"http://127.0.0.1:{s.sockets[0].getsockname()[1]}" for s in (relay, control)]

    async def pass_on(self, reader, writer):
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, back}
        self.open |= ends
        await asyncio.gather(self.copy(reader, back), self.copy(there, writer))
        self.open -= ends
        for end in ends:
            end.close()

    @staticmethod
    async def copy(reader, writer):
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            writer.write_eof()
        except OSError:
            writer.transport.abort()

    async def cut(self, reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        for end in list(self.open):
            end.transport.abort()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()


async def port_of(server):
    said = ""
    while line := (await server.stderr.readline()).decode(errors="replace"):
        said += line
        if found := re.search(r"serving MCP at http://[^:]+:(\d+)/mcp", line):
            return int(found[1])
    sys.exit(f"the server did not start:\n{said}")


async def tell(stream):
    while line := await stream.readline():
        sys.stderr.write("server: " + line.decode(errors="replace"))


async def run(binary, interpreter, script, arguments, state):
    command = [binary, "http", "--listen", "127.0.0.1:0"]
    environment = {**os.environ, "PYKEEP_STATE_DIR": state}
    pipe = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(*command, env=environment, stderr=pipe)
    try:
        port = await asyncio.wait_for(port_of(server), START_LIMIT)
        telling = asyncio.create_task(tell(server.stderr))
        url, cut = await Relay(port).serve()
        client = await asyncio.create_subprocess_exec(interpreter, script, url, cut, *arguments)
        try:
            status = await asyncio.wait_for(client.wait(), SCRIPT_LIMIT)
        except asyncio.TimeoutError:
            client.kill()
            raise
        server.send_signal(signal.SIGTERM)
        stopped = await asyncio.wait_for(server.wait(), STOP_LIMIT)
        await telling
        return status or (1 if stopped else 0)
    finally:
        if server.returncode is None:
            server.kill()
            await server.wait()


def main():
    binary, interpreter, script, *arguments = sys.argv[1:]
    if not os.path.exists(interpreter):
        print(f"skipped: the client is not installed: no {interpreter} (./dev test brings it)")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="pykeep-test-") as state:
        return asyncio.run(run(binary, interpreter, script, arguments, state))


if __name__ == "__main__":
    sys.exit(main())
