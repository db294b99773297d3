"""The adapter's default: every tool call starts a pykeep of its own. Three ways to meet again in one Python.

`client.get_tools()` needs no `async with`, which is why most programs use it. pykeep puts the kernel on
disk when the call is over and the next one wakes it up, in a tenth of a second.
"""

import asyncio
import re

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from support import PYKEEP, chat_model, python, quoting, show

SET, GET = "answer = 6 * 7", "print(answer)"


def client(*arguments, **options):
    server = {"transport": "stdio", "command": PYKEEP, "args": list(arguments)}
    return MultiServerMCPClient({"python": server}, **options)


async def ask(model, tools):
    question = "Multiply 6 by 7 in one call, and print the result in another."
    answer = await create_agent(model, tools).ainvoke({"messages": [{"role": "user", "content": question}]})
    show(answer["messages"])


async def by_handle():
    """The model passes the handle on, which the first result names. Nothing to set up."""

    def with_handle(messages):
        handle = re.search(r'session="(\w+)"', messages[-1].text)[1]
        return python(GET, session=handle)

    await ask(chat_model(python(SET), with_handle, quoting("It is {}.")), await client().get_tools())


async def by_name():
    """The server is told a name: for one conversation at a time, also over restarts of your program."""
    tools = await client("--session", "my-conversation").get_tools()
    await ask(chat_model(python(SET), python(GET), quoting("It is {}.")), tools)


async def by_interceptor():
    """The program passes the handle: for many conversations. The model can neither forget nor change it."""
    tools = {tool.name: tool for tool in await client().get_tools()}
    created = (await tools["create_session"].ainvoke({"name": "conversation-42"}))[0]["text"]
    handle = re.search(r'session="(\w+)"', created)[1]

    async def in_session(request, handler):
        return await handler(request.override(args={**request.args, "session": handle}))

    tools = await client(tool_interceptors=[in_session]).get_tools()
    run_python = [tool for tool in tools if tool.name == "run_python"]
    await ask(chat_model(python(SET), python(GET), quoting("It is {}.")), run_python)


async def main():
    for way in (by_handle, by_name, by_interceptor):
        print(f"== {way.__name__}: {way.__doc__}")
        await way()


asyncio.run(main())
