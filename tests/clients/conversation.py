"""What every Python client does with a session, whatever its version, era and transport."""

import base64
import struct
import time
import urllib.request
import zlib

import anyio

STEPS = "import time\nfor step in range(3):\n    print(step, flush=True)\n    time.sleep(1.5)"
WAIT = 150  # seconds for a call: on a busy machine matplotlib's first import takes long
CANCEL_AFTER = 2.5  # seconds: the cell has begun by then
CHART = "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()"


def size_of_png(data):
    """Width and height of a PNG whose every chunk is whole, whose pixels inflate and which ends."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, kinds, pixels = 8, [], b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        kinds.append(kind)
        pixels += body if kind == b"IDAT" else b""
        at += 12 + length
    assert kinds[0] == b"IHDR" and kinds[-1] == b"IEND" and zlib.decompress(pixels)
    return struct.unpack(">II", data[16:24])


def text(result):
    return "".join(block.text for block in result.content if block.type == "text")


def session_of(result):
    return result.meta["io.pykeep/execution"]["session"]


async def chart(call):
    result = await call(CHART)
    if "No module named 'matplotlib'" in text(result):
        print("skipped: the chart: the Python environment has no matplotlib")
        return
    images = [block for block in result.content if block.type == "image"]
    assert len(images) == 1, text(result)
    width, height = size_of_png(base64.b64decode(images[0].data, validate=True))
    assert width > 200 and height > 150


async def progress(call):
    heard = []

    async def hear(progress, total, message):
        heard.append(progress)

    assert text(await call(STEPS, progress_callback=hear)) == "0\n1\n2\n"
    assert heard and heard == sorted(set(heard)), heard


async def converse(call, cancel):
    """`call(code, ...)` runs a cell in one session, `cancel(code)` one that is cancelled while it
    sleeps. Leaves `kept` there."""
    await chart(call)
    await progress(call)
    await cancel("kept = 'kept still'\ntime.sleep(60)\nkept = 'lost'")
    started = time.monotonic()
    assert text(await call("kept")) == "'kept still'"
    assert time.monotonic() - started < 30, "the cancelled cell went on"


async def survive_cut(call, cut):
    """The connections are cut while a cell runs: its result arrives all the same."""

    async def cut_later():
        await anyio.sleep(3)
        await anyio.to_thread.run_sync(lambda: urllib.request.urlopen(cut, timeout=10).close())

    async def hear(progress, total, message):
        pass

    async with anyio.create_task_group() as group:
        group.start_soon(cut_later)
        result = await call("time.sleep(8)\n'survived'", progress_callback=hear)
    assert text(result) == "'survived'"
