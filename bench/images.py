"""What kernel images give: starts, memory, snapshots, forks, hibernation, beside ipykernel and a cold start."""

import contextlib
import re
import statistics
import sys
import time

import over_http
import servers
from http_server import HttpServer
from table import attempted, counted, megabytes, seconds, sized, timed

COUNT = 20  # samples of everything timed
LIVE = 100
HIBERNATED = 200
MB = 1_000_000
IMPORTS = "import numpy, pandas, matplotlib.pyplot"
DESCRIBE = (
    "import numpy as np, pandas as pd\n"
    "df = pd.DataFrame(np.random.rand(1000, 4), columns=list('abcd'))\n"
    "df.describe()"
)
PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()"
GIBIBYTE = "import numpy as np; a = np.random.default_rng(1).integers(0, 1 << 62, 1 << 27); len(a)"
DRAW = (
    "import random, uuid, secrets, numpy as np\n"
    "print('drawn', random.random(), np.random.rand(), uuid.uuid4(), secrets.token_hex(8))"
)
MANY = ["--max-kernels", "256", "--disk", "64GiB", "--checkpoint-cells", "0", "--checkpoint-seconds", "0"]


def rows(pykeep, env):
    wait_for_image(pykeep, env)
    for group in (
        starts,
        after_listing,
        pool,
        memory,
        live,
        snapshots,
        large_snapshots,
        randomness,
        hibernation,
    ):
        print(f"measuring: images, {group.__name__}", file=sys.stderr)
        yield from attempted(f"images, {group.__name__}", group, pykeep, env)


def wait_for_image(pykeep, env, limit=180.0):
    """The first start of a server in an environment without an image bakes one behind the session."""
    until = time.monotonic() + limit
    with HttpServer([pykeep], env=env) as server:
        while 'how="template_image"' not in server.request("GET", "/metrics")[2].decode():
            if time.monotonic() > until:
                raise TimeoutError("no session started from an image; see `pykeep doctor`")
            session = _handle(server.call_tool("create_session").text)
            server.call_tool("run_python", {"session": session, "code": "1"})
            server.call_tool("close_session", {"session": session})
            time.sleep(1)


def _handle(text) -> str:
    return re.search(r"\b[a-z2-7]{26}\b", text)[0]


class Keep(servers.Wire):
    """A pykeep over stdio with the tools that are measured."""

    def __init__(self, pykeep, env, *options):
        super().__init__([pykeep, *options], env)
        self.initialize()

    def tool(self, name, **arguments) -> str:
        result = self.request("tools/call", {"name": name, "arguments": arguments})
        text = "\n".join(block["text"] for block in result["content"] if block["type"] == "text")
        assert not result.get("isError"), text
        return text

    def cell(self, session, code) -> str:
        return self.tool("run_python", session=session, code=code, wait=300)

    def new_session(self) -> str:
        return _handle(self.tool("create_session"))

    def snapshot(self, session):
        """Its id, and the seconds that the kernel stood still."""
        text = self.tool("snapshot", session=session)
        return _handle(text), int(re.search(r"stood still for (\d+) ms", text)[1]) / 1000

    def restore(self, snapshot) -> str:
        return _handle(self.tool("restore_snapshot", snapshot=snapshot))


@contextlib.contextmanager
def keep(pykeep, env, *options):
    with contextlib.closing(Keep(pykeep, env, *options)) as server:
        yield server


# ---- starts ----


def starts(pykeep, env):
    """From the start of the process to the first result, the usual libraries imported."""

    def thawed():
        server = Keep(pykeep, env)
        assert "2" in server.run("1+1")
        return server

    def cold():
        server = Keep(pykeep, env, "--no-images")
        assert "2" in server.run(f"{IMPORTS}\n1+1")
        return server

    def ipykernel():
        kernel = servers.Ipykernel()
        kernel.client.wait_for_ready(timeout=60)
        assert kernel.run(f"{IMPORTS}\n1+1").endswith("2")
        return kernel

    works = (thawed, ipykernel, cold)
    samples = [[] for _ in works]
    for turn in range(COUNT + 1):  # the first is not counted
        for taken, work in zip(samples, works):
            time.sleep(0.05)
            started = time.perf_counter()
            server = work()
            if turn:
                taken.append(time.perf_counter() - started)
            server.close()
    ours, peer, own_cold = samples
    yield timed("start to the first result, with numpy, pandas, matplotlib", ours, peer, below=0.110)
    yield timed("the same (peer: our own cold start)", ours, own_cold)


def after_listing(pykeep, env):
    """A client that looks at the tools first."""
    taken = []
    for _ in range(COUNT):
        with keep(pykeep, env) as server:
            server.request("tools/list", {})
            time.sleep(0.3)
            started = time.perf_counter()
            assert "2" in server.run("1+1")
            taken.append(time.perf_counter() - started)
    yield timed("first call 300 ms after tools/list", taken, below=0.035)


def pool(pykeep, env):
    yield over_http.first_call_from_pool(pykeep, env, COUNT, below=0.035)


# ---- memory ----


def memory(pykeep, env):
    """Of the kernel's process alone, with others alive: what a lone process has mapped from a file that
    others would share counts as private too."""
    steps = (("1+1", "1+1", 8), ("df.describe()", DESCRIBE, 15), ("a plot", PLOT, 30))
    with keep(pykeep, env, *MANY) as server:
        sessions = [server.new_session() for _ in range(COUNT)]
        for what, code, bound in steps:
            for session in sessions:
                server.cell(session, code)
            private = [servers.private(kernel) for kernel in servers.kernels_below(server.process.pid)]
            assert len(private) == COUNT, f"{len(private)} kernels"
            yield sized(
                f"private memory of a session after {what} (median of {COUNT} alive)",
                statistics.median(private),
                below=bound * MB,
                note=f"at most {megabytes(max(private))}",
            )


def live(pykeep, env):
    with keep(pykeep, env, *MANY) as server:
        started = time.perf_counter()
        sessions = [server.new_session() for _ in range(LIVE)]
        for session in sessions:
            assert "2" in server.cell(session, "1+1")
        note = f"started in {seconds(time.perf_counter() - started)}"
        kernels = servers.kernels_below(server.process.pid)
        assert len(kernels) == LIVE, f"{len(kernels)} kernels"
        yield sized(
            f"{LIVE} live sessions: proportional, kernels", sum(map(servers.proportional, kernels)), note=note
        )
        below = sum(map(servers.proportional, servers.descendants(server.process.pid)))
        yield sized(f"{LIVE} live sessions: proportional, all processes below the server", below)
        yield sized(f"{LIVE} live sessions: server, resident", servers.resident(server.process.pid))
        for session in sessions:
            assert "4" in server.cell(session, "2+2")


# ---- snapshots ----


def snapshots(pykeep, env):
    pauses, whole, restores, forks, sets = [], [], [], [], []
    with keep(pykeep, env, *MANY) as server:
        for number in range(COUNT):
            session = server.new_session()
            server.cell(session, f"x = {number}")
            started = time.perf_counter()
            made, pause = server.snapshot(session)
            whole.append(time.perf_counter() - started)
            pauses.append(pause)
            started = time.perf_counter()
            fork = server.restore(made)
            assert server.cell(fork, "x").endswith(str(number))
            restores.append(time.perf_counter() - started)
            started = time.perf_counter()
            eight = []
            for _ in range(8):
                begun = time.perf_counter()
                eight.append(server.restore(made))
                assert server.cell(eight[-1], "x").endswith(str(number))
                forks.append(time.perf_counter() - begun)
            sets.append(time.perf_counter() - started)
            for each in (session, fork, *eight):
                server.tool("close_session", session=each)
            server.tool("delete_snapshot", snapshot=made)
    yield timed("snapshot of a fresh session: the kernel stands still", pauses, below=0.030)
    yield timed("snapshot of a fresh session: the whole call", whole)
    yield timed("restore of a snapshot to the first result", restores, below=0.090)
    yield timed(
        "fork x8: all eight to their first results", sets, note=f"each {seconds(statistics.median(forks))}"
    )


def large_snapshots(pykeep, env):
    pauses, whole = [], []
    with keep(pykeep, env, *MANY, "--memory", "4GiB") as server:
        session = server.new_session()
        server.cell(session, GIBIBYTE)
        for _ in range(COUNT):
            started = time.perf_counter()
            made, pause = server.snapshot(session)
            whole.append(time.perf_counter() - started)
            pauses.append(pause)
            server.cell(session, "a[::512] += 1")  # every page, so that nothing is as before
            server.tool("delete_snapshot", snapshot=made)
        made, _ = server.snapshot(session)
        total = server.cell(session, "int(a.sum())").splitlines()[-1]
        started = time.perf_counter()
        fork = server.restore(made)
        assert server.cell(fork, "len(a)").endswith(str(1 << 27))
        restored = time.perf_counter() - started
        assert server.cell(fork, "int(a.sum())").splitlines()[-1] == total
    note = f"restored to the first result in {seconds(restored)}"
    yield timed("snapshot with a 1 GiB array: the kernel stands still", pauses, below=0.030)
    yield timed("snapshot with a 1 GiB array: the whole call", whole, note=note)


def randomness(pykeep, env):
    with keep(pykeep, env, *MANY) as server:

        def draw(session):
            return re.search(r"drawn (.*)", server.cell(session, DRAW))[1].split()

        session = server.new_session()
        server.cell(session, "import random; random.seed(1)")
        made, _ = server.snapshot(session)
        drawn = [draw(server.restore(made)) for _ in range(8)]
        distinct = [len(set(column)) for column in zip(*drawn)]
        yield counted(
            "forks that differ in random, np.random, uuid4, secrets",
            "/".join(map(str, distinct)),
            must="8/8/8/8",
            met=distinct == [8] * 4,
        )
        rolled = []
        for _ in range(5):
            server.tool("restore_snapshot", snapshot=made, session=session)
            rolled.append(tuple(draw(session)[:2]))
        yield counted(
            "rollbacks that go on with the same random and np.random",
            rolled.count(rolled[0]),
            must="5",
            met=rolled.count(rolled[0]) == 5,
        )


# ---- hibernation ----


def hibernation(pykeep, env):
    with keep(pykeep, env, *MANY, "--idle-timeout", "2") as server:
        fresh = servers.resident(server.process.pid)
        sessions = []
        for number in range(HIBERNATED):
            sessions.append(server.new_session())
            server.cell(sessions[-1], f"x = {number}")
        until = time.monotonic() + 300
        while (awake := len(servers.kernels_below(server.process.pid))) and time.monotonic() < until:
            time.sleep(0.2)
        assert not awake, f"{awake} kernels do not hibernate"
        note = f"{megabytes(fresh)} without any"
        yield sized(
            f"server with {HIBERNATED} hibernated, resident", servers.resident(server.process.pid), note=note
        )
    woken, lost = [], 0
    with keep(pykeep, env, *MANY) as server:  # another process, as when a client comes back
        for number, session in enumerate(sessions):
            started = time.perf_counter()
            text = server.cell(session, "x")
            woken.append(time.perf_counter() - started)
            lost += not text.endswith(f"\n{number}")
        for session in sessions:
            server.tool("close_session", session=session)
    yield timed(
        f"wake of a hibernated session to its result, {HIBERNATED - lost} of {HIBERNATED} kept",
        woken,
        below=0.110,
    )
    yield counted("hibernated sessions lost", lost, must="0", met=lost == 0)
