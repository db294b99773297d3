"""What `pykeep http` bears: requests a second, connections, streams, readers that do not read."""

import contextlib
import re
import resource
import statistics
import sys
import time

import servers
from http_server import HttpServer
from load import Channel, drive, processor_time
from table import Row, attempted, loaded, megabytes, seconds, sized, timed

SECONDS = 5  # of load, for each row
SESSIONS = 50
IDLE, STREAMS, SLOW_READERS = 1000, 200, 50
MIB = 1 << 20
SLOW_READERS_MAY_COST = SLOW_READERS * 1 * MIB


def rows(pykeep, env):
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (4096, max(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    )
    for measure in (listings, cells, idle_connections, streams, slow_readers):
        print(f"measuring: http, {measure.__name__}", file=sys.stderr)
        with HttpServer([pykeep], "--max-kernels", "128", env=env) as server:
            yield from attempted(f"http, {measure.__name__}", measure, server)
    yield from beside_stdio(pykeep, env)
    yield first_call_from_pool(pykeep, env)


@contextlib.contextmanager
def connected(server, count, *, legacy=True):
    channels = [Channel(server.address) for _ in range(count)]
    try:
        yield [channel.initialize() for channel in channels] if legacy else channels
    finally:
        for channel in channels:
            channel.close()


def load(server, what, channels) -> Row:
    drive(channels, 0.5)  # warm
    begun, ours = processor_time(server.process.pid), time.process_time()
    started = time.perf_counter()
    latencies = drive(channels, SECONDS)
    taken = time.perf_counter() - started
    server_share = (processor_time(server.process.pid) - begun) / taken
    client_share = (time.process_time() - ours) / taken
    note = f"processors used: server {server_share:.2f}, client {client_share:.2f}"
    return loaded(what, len(latencies) / taken, latencies, note=note)


def listings(server):
    for count in (1, 16, 128):
        for era, legacy in (("2025-11-25", True), ("2026-07-28", False)):
            with connected(server, count, legacy=legacy) as channels:
                for channel in channels:
                    channel.message("tools/list", expected=b'"run_python"', modern=not legacy)
                yield load(server, f"tools/list, {era}, {count} connections", channels)


def cells(server):
    with connected(server, SESSIONS) as channels:
        first = [channel.cell("1+1", b'"type":"text"').once() for channel in channels]
        yield load(server, f"warm run_python('1+1'), {SESSIONS} sessions at once", channels)
        yield load(server, "warm run_python('1+1'), 1 session", channels[:1])
        for channel, response in zip(channels, first):
            close_session(channel, response)


def close_session(channel, first_response):
    """The first response of a session names it."""
    session = re.search(rb"New session ([a-z2-7]{26})", first_response)[1].decode()
    channel.message("tools/call", {"name": "close_session", "arguments": {"session": session}})
    assert b'isError":true' not in channel.once()


def grown(server, work):
    """What a step adds to the server's memory."""
    before = servers.resident(server.process.pid)
    work()
    return servers.resident(server.process.pid) - before


def idle_connections(server):
    server.request("GET", "/healthz")
    channels = []

    def connect():
        for _ in range(IDLE):
            channels.append(Channel(server.address).get("/healthz"))
            channels[-1].once()

    cost = grown(server, connect)
    note = f"{cost / IDLE / 1024:.1f} KiB each"
    yield sized(f"server grows by, {IDLE:,} idle connections", cost, below=24 * MIB, note=note)
    for channel in channels:
        channel.close()


def streams(server):
    with connected(server, 1):
        pass
    channels = []

    def connect():
        for _ in range(STREAMS):
            channel = Channel(server.address).initialize().get("/mcp", "text/event-stream")
            channel.send()
            assert channel.socket.recv(4096).startswith(b"HTTP/1.1 200 ")
            channels.append(channel)

    cost = grown(server, connect)
    note = f"{cost / STREAMS / 1024:.1f} KiB each, its MCP session included"
    yield sized(f"server grows by, {STREAMS} open SSE streams", cost, below=24 * MIB, note=note)
    for channel in channels:
        channel.close()


def slow_readers(server):
    """Half of them fetch 256 MiB, half ask for the tools 500 times; each reads a byte a second."""
    made = server.call_tool("create_session").text
    session = re.search(r"[a-z2-7]{26}", made)[0]
    code = f"open('large', 'wb').truncate({256 * MIB})"
    server.call_tool("run_python", {"session": session, "code": code})
    text = server.call_tool("download_file", {"session": session, "path": "large"}).text
    path = re.search(r"/files/[a-z2-7]{26}", text)[0]
    readers = [Channel(server.address, receive_buffer=4096) for _ in range(SLOW_READERS)]
    for reader in readers[::2]:
        reader.get(path)
    for reader in readers[1::2]:
        reader.message("tools/list", modern=True)
        reader.request *= 500  # asked ahead, so that answers pile up as well
    before = servers.resident(server.process.pid)
    servers.forget_peak(server.process.pid)
    for reader in readers:
        reader.socket.setblocking(False)
        with contextlib.suppress(OSError):
            reader.socket.send(reader.request)
    for _ in range(SECONDS * 2):
        time.sleep(1)
        for reader in readers:
            with contextlib.suppress(OSError):
                reader.socket.recv(1)
    cost = servers.peak(server.process.pid) - before
    assert server.request("GET", "/healthz")[0] == 200
    for reader in readers:
        reader.close()
    what = f"server grows by, {SLOW_READERS} readers of 1 byte/s"
    yield sized(
        what, cost, below=SLOW_READERS_MAY_COST, note=f"half of them of a file of {megabytes(256 * MIB)}"
    )


def beside_stdio(pykeep, env):
    """The same warm cell over both, in turns."""
    with HttpServer([pykeep], env=env) as server, contextlib.closing(servers.Wire([pykeep], env)) as wire:
        wire.initialize()
        wire.run("1+1")
        with connected(server, 1) as (channel,):
            channel.cell("1+1", b'"type":"text"').once()
            pairs = []
            for _ in range(500):
                started = time.perf_counter()
                channel.once()
                between = time.perf_counter()
                wire.run("1+1")
                pairs.append((between - started, time.perf_counter() - between))
    yield timed("warm `1+1` over HTTP (peer: over stdio)", *zip(*pairs))


def first_call_from_pool(pykeep, env, count=20, below=None) -> Row:
    """A new client with a new session, from `initialize` to the first result."""
    taken, calls = [], []
    with HttpServer([pykeep], "--max-kernels", "128", env=env) as server:
        for number in range(count + 3):
            with connected(server, 1) as (channel,):
                channel.message("tools/list").once()  # after which spares are made
            wait_for_spares(server)
            started = time.perf_counter()
            with connected(server, 1) as (channel,):
                begun = time.perf_counter()
                response = channel.cell("1+1", b'"type":"text"').once()
                ended = time.perf_counter()
                close_session(channel, response)
            if number >= 3:
                calls.append(ended - begun)
                taken.append(ended - started)
    note = f"the call alone {seconds(statistics.median(calls))}"
    what = "from a pool over HTTP: initialize to the first result"
    return timed(what, taken, below=below, note=note)


def wait_for_spares(server, limit=10.0):
    """Until two more kernels run than sessions have; then until the machine is quiet again."""
    until = time.monotonic() + limit
    while len(servers.kernels_below(server.process.pid)) < 2:
        if time.monotonic() > until:
            raise TimeoutError("the pool was not filled")
        time.sleep(0.05)
    time.sleep(0.4)
