"""mcp 2.x: both eras over Streamable HTTP."""

import sys

import anyio
from conversation import CANCEL_AFTER, WAIT, converse, session_of, survive_cut, text

from mcp.client.client import Client

URL, CUT = sys.argv[1:3]


def runner(client, /, **arguments):
    async def call(code, **options):
        return await client.call_tool("run_python", {"code": code, "wait": WAIT, **arguments}, **options)

    return call


def canceller(call):
    """Leaving the scope of a call cancels it: by a notification in the legacy era, by closing its
    connection in the modern one."""

    async def cancel(code):
        with anyio.move_on_after(CANCEL_AFTER) as scope:
            await call(code)
        assert scope.cancelled_caught

    return cancel


async def use(mode):
    async with Client(URL + "/mcp", mode=mode) as client:
        assert (await client.list_tools()).tools[0].name == "run_python"
        first = await runner(client)("1")
        handle = session_of(first)
        call = runner(client) if mode == "legacy" else runner(client, session=handle)
        await converse(call, canceller(call))
        if mode == "legacy":
            await survive_cut(call, CUT)
    async with Client(URL + "/mcp", mode=mode) as client:
        assert text(await runner(client, session=handle)("kept")).endswith("'kept still'")


async def main():
    for mode in ("legacy", "auto"):
        await use(mode)


anyio.run(main)
