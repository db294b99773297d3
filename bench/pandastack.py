"""What `--backend pandastack` adds, on the stand-in for it (tests/fake_pandastack), which counts and can be slow."""

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
import urllib.request

from mcp_client import Client
from table import counted, seconds, timed

CELLS = 200
DELAY = 0.05


class Standin:
    def __init__(self, command):
        self.process = subprocess.Popen([*command, "0"], stdout=subprocess.PIPE, text=True)
        self.base = self.process.stdout.readline().split()[-1]

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(self.base + path, data, timeout=60) as answer:
            return json.loads(answer.read())

    def delay(self, wanted):
        self.ask("/_fake/defects", {"delay_ms": round(wanted * 1000)})

    def counters(self):
        return self.ask("/_fake/counters")

    def close(self):
        self.process.terminate()
        self.process.wait(30)


def handle_of(result):
    return re.search(r'session="([a-z0-9-]+)"', result.text)[1]


class Server:
    def __init__(self, pykeep, env, *arguments):
        self.client = Client([pykeep, "--backend", "pandastack", *arguments], env=env, timeout=120)
        self.client.connect()

    def tool(self, name, /, **arguments):
        result = self.client.call_tool(name, arguments)
        assert not result.is_error, result.text
        return result

    def run(self, code, **arguments):
        return self.tool("run_python", code=code, **arguments)

    def kill(self):
        self.client.process.kill()
        self.client.process.wait()


def rows(pykeep, env):
    command = os.environ.get("PYKEEP_FAKE_PANDASTACK")
    if not command:
        print("no pandastack: PYKEEP_FAKE_PANDASTACK does not say how the stand-in starts", file=sys.stderr)
        return
    with contextlib.closing(Standin(shlex.split(command))) as standin:
        key = {"PANDASTACK_API": standin.base, "PANDASTACK_API_KEY": "pds_local_dev_token"}
        for carrier in ("proxy", "exec"):
            yield from cells(standin, pykeep, env | key, carrier)
        yield from lives(standin, pykeep, env | key)


def cells(standin, pykeep, env, carrier):
    server = Server(pykeep, env, "--pandastack-carrier", carrier)
    first = server.run("1").seconds
    yield timed(f"first cell, by {carrier}: sandbox, relay and kernel", [first])
    before = standin.counters()
    samples = [server.run("1 + 1").seconds for _ in range(CELLS)]
    after = standin.counters()
    requests = sum(after["requests"].values()) - sum(before["requests"].values())
    sent, received = (after[way] - before[way] for way in ("bytes_in", "bytes_out"))
    note = f"{sent / CELLS:.0f} B to it, {received / CELLS:.0f} B from it"
    yield counted(
        f"requests a warm cell, by {carrier}",
        f"{requests / CELLS:.2f}",
        must="<= 1",
        met=requests <= CELLS,
        note=note,
    )
    yield timed(f"warm cell, by {carrier}", samples)
    standin.delay(DELAY)
    samples = [server.run("1 + 1").seconds - DELAY for _ in range(CELLS)]
    standin.delay(0)
    yield timed(f"warm cell beyond the API's {seconds(DELAY)}, by {carrier}", samples)
    server.client.close()


def lives(standin, pykeep, env, count=5):
    """What happens to a session. Each time what is measured goes up to the result of a cell."""
    taken, restored, woken, adopted = [], [], [], []
    standin.ask("/_fake/reset", {})
    server = Server(pykeep, env)
    handle = handle_of(server.tool("create_session"))
    server.run("x = 41", session=handle)
    for i in range(count):
        taken.append(server.tool("snapshot", session=handle, name=f"s{i}").seconds)
        started = time.perf_counter()
        other = handle_of(server.tool("restore_snapshot", snapshot=f"s{i}"))
        assert "42" in server.run("x + 1", session=other).text
        restored.append(time.perf_counter() - started)
        server.tool("close_session", session=other)
    for _ in range(count):
        server.kill()
        server = Server(pykeep, env)
        result = server.run("x + 1", session=handle)
        assert "42" in result.text, result.text
        adopted.append(result.seconds)
    server.client.close()
    server = Server(pykeep, env, "--idle-timeout", "1")
    for _ in range(count):
        server.run("x", session=handle)
        while set(standin.counters()["sandboxes"].values()) != {"hibernated"}:
            time.sleep(0.05)
        result = server.run("x + 1", session=handle)
        assert "42" in result.text, result.text
        woken.append(result.seconds)
    server.client.close()
    yield timed("snapshot", taken, note="of it the stand-in's own work is most")
    yield timed("restore of a snapshot to a new session, and a cell", restored)
    yield timed("first cell after kill -9 of the server", adopted)
    yield timed("first cell of a hibernated session", woken)
