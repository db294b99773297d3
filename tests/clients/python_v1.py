"""mcp 1.x: revisions up to 2025-11-25, over Streamable HTTP and HTTP+SSE."""

import contextlib
import sys

import anyio
from conversation import CANCEL_AFTER, WAIT, converse, session_of, survive_cut, text

import mcp.types as types
from mcp import ClientSession, McpError
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

URL, CUT = sys.argv[1:3]


@contextlib.asynccontextmanager
async def connected(transport):
    async with transport as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        yield session


def runner(session, /, **arguments):
    async def call(code, **options):
        return await session.call_tool("run_python", {"code": code, "wait": WAIT, **arguments}, **options)

    return call


def canceller(session):
    """This SDK has no means to cancel; its users send the notification themselves."""

    async def cancel(code):
        async with anyio.create_task_group() as group:
            ident = session._request_id
            group.start_soon(runner(session), code)
            await anyio.sleep(CANCEL_AFTER)
            params = types.CancelledNotificationParams(requestId=ident, reason="the user pressed stop")
            notification = types.CancelledNotification(method="notifications/cancelled", params=params)
            await session.send_notification(types.ClientNotification(notification))
            group.cancel_scope.cancel()

    return cancel


async def over_streamable_http():
    async with connected(streamable_http_client(URL + "/mcp")) as session:
        assert (await session.list_tools()).tools[0].name == "run_python"
        await converse(runner(session), canceller(session))
        await survive_cut(runner(session), CUT)
        handle = session_of(await runner(session)("1"))
    # The session was ended with DELETE; its Python is found again by its handle.
    async with connected(streamable_http_client(URL + "/mcp")) as session:
        assert text(await runner(session, session=handle)("kept")).endswith("'kept still'")


async def over_sse():
    async with connected(sse_client(URL + "/sse")) as session:
        await converse(runner(session), canceller(session))
        handle = session_of(await runner(session)("1"))
    async with connected(sse_client(URL + "/sse")) as session:
        assert text(await runner(session, session=handle)("kept")).endswith("'kept still'")
        try:
            await session.read_resource("pykeep://nothing")
        except McpError as refused:
            assert refused.error.code == -32002
        else:
            raise AssertionError("a resource that is not there was read")


async def main():
    await over_streamable_http()
    await over_sse()


anyio.run(main)
