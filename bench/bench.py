#!/usr/bin/env python3
"""Measures a pykeep against ipykernel behind jupyter_client, and against its own bounds.

    bench.py PYKEEP [GROUP...]       groups: start warm output chart memory mutations http images pandastack;
                                     default: all

To be run by a Python that has ipykernel and jupyter_client: `./dev bench` makes one. The pykeep that is
compared runs its kernels in that same environment. Both take turns, so that what else goes on on the
machine meets both: sample by sample, but for the calls in a row, which go in blocks of 25 so that they
are in a row. Only those have a bound. A call now and then finds caches cold and processors asleep, which
costs pykeep about a millisecond: its ratio is smaller (4 to 7 where this was written, not 8).
Charts and images need PYKEEP_TEMPLATE, an environment as `pykeep template build` makes it; the peer has the
same versions. Over HTTP (over_http.py) the client, this process, is on the same machine as the server; how much
of a processor each used stands beside. pandastack is measured on the tests' stand-in, which `./dev bench
pandastack` starts; its own time is in the figures.
Ends with 1 when a bound was missed.
"""

import compileall
import contextlib
import itertools
import os
import pathlib
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests" / "support"))

import images  # noqa: E402
import over_http  # noqa: E402
import pandastack  # noqa: E402
import servers  # noqa: E402
from mcp_client import Client  # noqa: E402
from mutations import mutated_lines  # noqa: E402
from table import Row, attempted, show, sized, timed  # noqa: E402

MB = 1_000_000
STATE_MAY_GROW = 20 * MB
GIGABYTE = {
    "a million prints": "line = 'x' * 999\nfor _ in range(1_000_000): print(line)",
    "one print": "print('x' * 1_000_000_000)",
    "os.write": "import os\npiece = b'x' * 1_000_000\nfor _ in range(1000):\n"
    "    left = memoryview(piece)\n    while left: left = left[os.write(1, left):]",
    "a child process": "import subprocess\nsubprocess.run('yes | head -c 1000000000', shell=True)",
}


def elapsed(work, *arguments) -> float:
    started = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - started


def in_turns(count, *works, block=1, pause=0.005):
    """The seconds of each, in lists: `block` samples of one, `block` of the next, in alternating order.
    After the pause what a server does behind its answer (ipykernel writes its history) has ended."""
    samples = [[] for _ in works]
    for turn in range(count // block):
        for index in range(len(works))[:: -1 if turn % 2 else 1]:
            time.sleep(pause)
            samples[index] += [works[index]() for _ in range(block)]
    return samples


class Bench:
    def __init__(self, pykeep, state):
        self.pykeep = pykeep
        self.env = {**os.environ, "PYKEEP_STATE_DIR": state}
        self.same = {**self.env, "PYKEEP_TEMPLATE": sys.prefix}  # as ipykernel's
        self.prepare(pathlib.Path(state))

    def prepare(self, state):
        """What `pykeep template build` does for an environment: bytecode of the kernel's own files."""
        with contextlib.closing(servers.Wire([self.pykeep], self.same)) as server:
            server.initialize()
            server.run("1")
        compileall.compile_dir(state / "kernel", quiet=2)

    @contextlib.contextmanager
    def pair(self):
        """One of each in the same environment, started and warm."""
        with contextlib.closing(servers.Wire([self.pykeep], self.same)) as ours:
            with contextlib.closing(servers.Ipykernel()) as peer:
                ours.initialize()
                peer.client.wait_for_ready(timeout=60)
                for _ in range(20):
                    assert "2" in ours.run("1+1") and peer.run("1+1") == "2"
                yield ours, peer

    # ---- groups ----

    def start(self):
        """From the start of the process."""

        def until(work):
            def sample():
                started = time.perf_counter()
                server = work()
                taken = time.perf_counter() - started
                server.close()
                return taken

            return sample

        def to_initialize():
            server = servers.Wire([self.pykeep], self.same)
            server.initialize()
            return server

        def to_first_cell():
            server = to_initialize()
            assert "2" in server.run("1+1")
            return server

        def ipykernel_to_first_cell():
            kernel = servers.Ipykernel()
            kernel.client.wait_for_ready(timeout=60)
            assert kernel.run("1+1") == "2"
            return kernel

        (initialize,) = in_turns(50, until(to_initialize))
        yield timed("start to the answer of initialize", initialize, below=0.015)
        ours, peer = in_turns(10, until(to_first_cell), until(ipykernel_to_first_cell))
        yield timed("start to the first result", ours, peer)

    def warm(self):
        with self.pair() as (ours, peer):
            for what, code, block, faster in (
                ("warm `1+1`, call after call", "1+1", 25, 8),
                ("warm `print(1)`, call after call", "print(1)", 25, None),
                ("warm `1+1`, a call now and then", "1+1", 1, None),
            ):
                samples = in_turns(
                    500,
                    lambda code=code: elapsed(ours.run, code),
                    lambda code=code: elapsed(peer.run, code),
                    block=block,
                )
                yield timed(what, *samples, faster=faster)

    def output(self):
        with self.pair() as (ours, peer):
            for what, code, count in (
                ("22 MB in one print", "print('x' * 22_000_000)", 5),
                ("100,000 prints", "for i in range(100_000): print(i)", 5),
            ):
                samples = in_turns(
                    count,
                    lambda code=code: elapsed(ours.run, code),
                    lambda code=code: elapsed(peer.run, code),
                )
                yield timed(what, *samples)
        yield from self.interrupts()
        for what, code in GIGABYTE.items():
            yield self.gigabyte(what, code)

    def interrupts(self):
        busy = "while True: pass"
        with Client([self.pykeep], env=self.same) as client, contextlib.closing(servers.Ipykernel()) as peer:
            client.connect()
            client.call_tool("run_python", {"code": "1"})
            peer.client.wait_for_ready(timeout=60)

            def ours():
                running = client.start("tools/call", {"name": "run_python", "arguments": {"code": busy}})
                time.sleep(0.3)
                started = time.perf_counter()
                client.start("tools/call", {"name": "interrupt_execution", "arguments": {}})
                client.wait_for(running)
                return time.perf_counter() - started

            def theirs():
                sent = []

                def interrupt():
                    sent.append(time.perf_counter())
                    peer.manager.interrupt_kernel()

                timer = threading.Timer(0.3, interrupt)
                timer.start()
                peer.run(busy)
                return time.perf_counter() - sent[0]

            yield timed("interrupt of a busy loop", *in_turns(10, ours, theirs))

    def gigabyte(self, what, code) -> Row:
        command = [self.pykeep, "--memory", "6GiB"]
        with Client(command, env=self.same, timeout=600) as client:
            client.connect()
            client.call_tool("run_python", {"code": "print('x' * 3_000_000)"})
            before = servers.resident(client.process.pid)
            servers.forget_peak(client.process.pid)
            result = client.call_tool("run_python", {"code": code, "wait": 600})
            assert not result.is_error and len(result.text) < 100_000, result.text[-500:]
            grown = servers.peak(client.process.pid) - before
            note = f"in {result.seconds:.1f} s"
            return sized(f"server grows by, 1 GB from {what}", grown, below=STATE_MAY_GROW, note=note)

    def chart(self):
        if "PYKEEP_TEMPLATE" not in os.environ:
            print("no charts: PYKEEP_TEMPLATE names no environment with matplotlib", file=sys.stderr)
            return
        draw = "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()"

        def image(client):
            result = client.call_tool("run_python", {"code": draw})
            assert len(result.images) == 1, result.text
            return result.seconds

        first, warm = [], []
        for _ in range(5):
            with Client([self.pykeep], env=self.env) as client:
                client.connect()
                client.call_tool("run_python", {"code": "1"})
                first.append(image(client))
                warm += [image(client) for _ in range(20)]
        yield timed("first chart of a session, imports included", first)
        yield timed("warm chart", warm)

    def memory(self):
        with contextlib.closing(servers.Wire([self.pykeep], self.same)) as fresh:
            fresh.initialize()
            yield sized("server without a session, resident", servers.resident(fresh.process.pid))
        with self.pair() as (ours, peer):
            server = ours.process.pid
            kernel = servers.kernel_below(server)
            yield sized("server with a session, resident", servers.resident(server))
            yield sized("kernel, resident", servers.resident(kernel), servers.resident(peer.pid))
            yield sized("kernel, proportional", servers.proportional(kernel), servers.proportional(peer.pid))

    def mutations(self, count=100_000, batch=500):
        lines = mutated_lines(20261129)
        with Client([self.pykeep], env=self.same) as client:
            client._ids = itertools.count(10**9)  # which no mutated message cancels

            def send(count):
                for _ in range(count // batch):
                    client.send_bytes(b"".join(itertools.islice(lines, batch)))
                    client.request("ping")

            client.connect()
            send(count // 5)
            before = servers.resident(client.process.pid)
            servers.forget_peak(client.process.pid)
            taken = elapsed(send, count - count // 5)
            grown = servers.peak(client.process.pid) - before
            client.request("ping")
        note = f"in {taken:.1f} s"
        yield sized(f"server grows by, {count:,} mutated lines", grown, below=STATE_MAY_GROW, note=note)

    def http(self):
        yield from over_http.rows(self.pykeep, self.env)

    def images(self):
        if "PYKEEP_TEMPLATE" not in os.environ:
            print("no images: PYKEEP_TEMPLATE names no environment with matplotlib", file=sys.stderr)
            return
        yield from images.rows(self.pykeep, self.env)

    def pandastack(self):
        yield from pandastack.rows(self.pykeep, self.env)


GROUPS = ("start", "warm", "output", "chart", "memory", "mutations", "http", "images", "pandastack")


def main(pykeep, *groups):
    unknown = set(groups) - set(GROUPS)
    if unknown:
        sys.exit(f"bench.py: no group {', '.join(sorted(unknown))}; there are: {', '.join(GROUPS)}")
    rows = []
    with tempfile.TemporaryDirectory() as state:
        bench = Bench(pykeep, state)
        for group in groups or GROUPS:
            print(f"measuring: {group}", file=sys.stderr)
            rows += attempted(group, getattr(bench, group))
    title = f"{pykeep}, Python {sys.version.split()[0]}, {os.cpu_count()} processors"
    sys.exit(not show(title, rows))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
