# ruff: noqa: F811 (fixtures)
"""Sessions at PandaStack on a bad network, with a server that is killed now and then.

PYKEEP_FAULTS is how many faults there are (24), PYKEEP_SEED what draws them (with PYKEEP_FAULTS, others each time);
`./dev faults` takes both. A worker
drives one session and knows what its kernel must hold; with its own session it does one thing at a time.
"""

import contextlib
import os
import random
import re
import threading
import time
import traceback

import leftovers
import pytest
from conftest import program, until, with_sanitizer
from mcp_client import Client, ServerGone, anonymous_bytes
from pandastack import KEY, environment, fake, handle_of, python, value  # noqa: F401

FAULTS = int(os.environ.get("PYKEEP_FAULTS", "24"))
DRAWN = random.randrange(1, 1 << 30) if "PYKEEP_FAULTS" in os.environ else 20261129
SEED = int(os.environ.get("PYKEEP_SEED", "0")) or DRAWN
WORKERS = 3
RATE = 0.15  # of the requests
MAY_GROW = with_sanitizer(48 << 20)
LIMIT = 150  # seconds for one call: a sandbox that is out of reach for a minute is given up, and made anew

LOST = re.compile(r"[Vv]ariables (and files )?(from before )?are (gone|lost)")
CELL = """
ran = globals().get('ran', [])
ran.append({id})
with open('ran', 'a') as file: print({id}, file=file)
{more}
print('ran', *ran)
print('kept', *open('ran').read().split())
"""
SLOW = "import time\nfor i in range(5): print('line', i, flush=True); time.sleep(.05)"
WORDS = ("internal error", KEY)  # that no result has


class Servers:
    """One server after the other, over one state directory. A call to one that is killed under it gives None."""

    def __init__(self, environment, arguments):
        self.environment, self.arguments = environment, arguments
        self.lock = threading.Lock()
        self.kills = 0
        self.client = None
        self.start()

    def start(self):
        self.client = Client([program("PYKEEP_BINARY"), *self.arguments], env=self.environment, timeout=LIMIT)
        self.client.connect()
        self.at_first = anonymous_bytes(self.client.process.pid)

    def check_memory(self):
        with contextlib.suppress(OSError):
            grown = anonymous_bytes(self.client.process.pid) - self.at_first
            assert grown < MAY_GROW, f"the server has grown by {grown >> 20} MiB"

    def kill(self):
        with self.lock:
            self.check_memory()
            self.client.process.kill()
            self.client.process.wait()
            self.kills += 1
            self.start()

    def call(self, name, arguments):
        client = self.client
        try:
            result = client.call_tool(name, arguments)
        except ServerGone:
            assert client.process.wait(10) == -9, client.stderr
            with self.lock:  # the next one is there
                return None
        for word in WORDS:
            assert word not in result.text, result.text
        assert result.text.strip()
        return result


class Session:
    """One, and what must be in it: `variables` and `files` are the cells that certainly ran, in the kernel's memory
    and in its workspace; `unsure` those of which nothing is known."""

    def __init__(self, servers, draw, numbers, told):
        self.servers, self.draw, self.numbers, self.told = servers, draw, numbers, told
        self.handle = None
        self.forget()
        self.snapshots = {}  # name -> the variables then

    def forget(self):
        self.variables, self.files, self.unsure = [], [], set()

    def open(self):
        while self.handle is None:
            made = self.servers.call("create_session", {})
            if made and not made.is_error:
                self.handle = handle_of(made)
        self.forget()

    def cell(self, more="", **arguments):
        number = next(self.numbers)
        code = CELL.format(id=number, more=more)
        result = self.servers.call("run_python", {"code": code, "session": self.handle, **arguments})
        if result is None:
            self.unsure.add(number)
            return None
        self.look(result, number)
        return result

    def look(self, result, number):
        """Nothing ran twice; what is lost is said."""
        text = result.text
        variables, files = (self.numbers_after(word, text) for word in ("ran", "kept"))
        if LOST.search(text):
            self.unsure |= {number}
            self.variables = []
            if "files from before are gone" in text or "and files" in text:
                self.files = []
        if variables is None or files is None:
            assert result.is_error, text
            self.told.add(re.sub(r"\d+", "N", text.replace(self.handle, "HANDLE")))
            self.unsure.add(number)
            return
        assert len(set(variables)) == len(variables) and len(set(files)) == len(files), f"twice: {text}"
        for kept, got in ((self.variables, variables), (self.files, files)):
            missing = set(kept) - set(got)
            assert not missing, f"{missing} are missing, and nobody said so, in {self.handle}: {text}"
        strange = set(variables) - set(self.variables) - self.unsure - {number}
        assert not strange, f"whose are {strange}? {text}"
        assert variables[-1] == number == files[-1]
        self.variables, self.files = variables, files

    @staticmethod
    def numbers_after(word, text):
        found = re.search(rf"^{word}((?: \d+)+)$", text, re.M)
        return found and [int(number) for number in found[1].split()]

    # ---- what a worker does with it ----

    def streams(self):
        result = self.cell(SLOW)
        if result and not result.is_error:
            assert [int(i) for i in re.findall(r"line (\d)", result.text)] == list(range(5)), result.text

    def raises(self):
        result = self.servers.call("run_python", {"code": "1/0", "session": self.handle})
        if result and LOST.search(result.text):
            self.variables = []
            if "files from before" in result.text:
                self.files = []

    def stops(self):
        self.cell("import time; time.sleep(30)", timeout=1)

    def files_come_and_go(self):
        text = str(self.draw.random()) * 400
        up = self.servers.call("upload_file", {"session": self.handle, "name": "up.txt", "text": text})
        if up is None or up.is_error:
            return
        down = self.servers.call("download_file", {"session": self.handle, "path": "up.txt"})
        if down and not down.is_error:
            assert text in down.text

    def snapshot(self):
        name = f"s{next(self.numbers)}"
        before = set(self.variables)
        taken = self.servers.call("snapshot", {"session": self.handle, "name": name})
        if taken and not taken.is_error and not LOST.search(taken.text):
            self.snapshots[name] = before

    def close(self):
        closed = self.servers.call("close_session", {"session": self.handle})
        if closed is None or not closed.is_error:  # of a server that was killed it may be closed
            self.handle = None
            self.open()

    def act(self):
        deeds = {self.cell: 8, self.streams: 4, self.raises: 1, self.stops: 1, self.files_come_and_go: 2}
        deeds |= {self.snapshot: 1, self.close: 1, self.servers.kill: 1}
        self.draw.choices(list(deeds), list(deeds.values()))[0]()


@pytest.mark.parametrize("carrier", ["proxy", "exec"])
def test_nothing_runs_twice_and_nothing_is_lost_in_silence(fake, environment, carrier):
    print(f"\nPYKEEP_SEED={SEED}, by {carrier}", end="")
    servers = Servers(environment, ["--pandastack-carrier", carrier, "--idle-timeout", "3600"])
    numbers = iter(range(1, 1 << 30))
    told, broken = set(), []
    before = fake.faults()
    at_first = set(fake.counters()["snapshots"])
    end = time.monotonic() + 30 * FAULTS
    sessions = [Session(servers, random.Random(SEED + i), numbers, told) for i in range(WORKERS)]

    def struck():
        return fake.faults() - before + servers.kills

    def work(session):
        try:
            session.open()
            while struck() < FAULTS / 2 and time.monotonic() < end and not broken:
                session.act()
        except BaseException:
            broken.append(traceback.format_exc())

    fake.defects(random=f"{SEED},{RATE}")
    threads = [threading.Thread(target=work, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    faults = struck()
    fake.defects()
    print(f": {faults} faults, {servers.kills} servers killed", end="")
    for text in sorted(told):
        print("\n  told:", text[:300], end="")
    assert not broken, broken[0]
    assert faults >= FAULTS / 2

    # Afterwards everything works, and holds what it must.
    for session in sessions:
        result = session.cell()
        assert not result.is_error, result.text
        for name, variables in session.snapshots.items():
            back = servers.call("restore_snapshot", {"snapshot": name})
            assert not back.is_error, back.text
            there = value(servers.client, "print('ran', *globals().get('ran', []))", session=handle_of(back))
            assert variables <= set(Session.numbers_after("ran", there) or []), there
            servers.call("close_session", {"session": handle_of(back)})
            assert not servers.call("delete_snapshot", {"snapshot": name}).is_error
    servers.check_memory()

    # Nor is anything left: sandboxes that no session names are reaped by the next server.
    servers.kill()
    python(servers.client, "1")
    for handle in re.findall(r"^([a-z2-7]{26})", servers.call("list_sessions", {}).text, re.M):
        assert not servers.call("close_session", {"session": handle}).is_error
    until(lambda: fake.tick(60) or not fake.sandboxes(), 60)
    servers.client.close()
    until(lambda: fake.counters()["processes"] == 0)
    # One that was being made when its server was killed, or refused too late, nobody knows: it expires there.
    unknown = set(fake.counters()["snapshots"]) - at_first
    assert len(unknown) <= servers.kills + faults // 20, unknown
    until(lambda: not leftovers.strays(environment["PYKEEP_STATE_DIR"]))
