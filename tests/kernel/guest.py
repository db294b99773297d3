"""The server's side of a guest: `start`, exchanges and signals, over the relay's HTTP (docs/guest-relay.md)."""

import http.client
import json
import os
import secrets
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path
from signal import SIGKILL

import client

MAIN = Path(__file__).resolve().parents[2] / "sandbox/kernel/pykeep_guest/main.py"


def frame(header):
    data = json.dumps(header).encode()
    return struct.pack("<II", len(data), 0) + data


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def waits_for(file):
    """Code that waits until the test has made a file in the workspace."""
    return f"while not os.path.exists({file!r}): time.sleep(0.02)\n"


class Refused(Exception):
    def __init__(self, status, body):
        super().__init__(status, body)
        self.status = status
        self.body = json.loads(body) if body else {}
        self.reason = self.body.get("reason")


class Cut(Exception):
    """An answer without its `end` record."""


class Record(dict):
    """The header, and beside it the payload."""

    payload = b""


class Answer:
    """Records of one exchange, as they come."""

    def __init__(self, response, connection):
        self._response = response
        self._connection = connection

    def __iter__(self):
        while (record := self.next())["is"] != "end":
            yield record

    def next(self, timeout=60):
        if self._connection.sock is not None:
            self._connection.sock.settimeout(timeout)
        header, payload = struct.unpack("<II", self._exactly(8))
        record = Record(json.loads(self._exactly(header)))
        record.payload = self._exactly(payload)
        if record["is"] == "end":
            assert self._response.read() == b""
        return record

    def all(self):
        """Every record, with the end."""
        records = []
        while not records or records[-1]["is"] != "end":
            records.append(self.next())
        return records

    def _exactly(self, size):
        try:
            data = self._response.read(size) if size else b""  # read(0) would wait for the next chunk
        except (http.client.HTTPException, ConnectionError) as error:
            raise Cut(error) from None
        if len(data) < size:
            raise Cut(data)
        return data

    def close(self):
        self._response.close()
        self._connection.close()


class Guest:
    """A run directory with its relay and kernel, and a client that remembers epoch and numbers."""

    def __init__(self, python=client.PYTHON, environment=None):
        self.workspace = Path(tempfile.mkdtemp(prefix="pykeep-test-"))
        self.run = Path(tempfile.mkdtemp(prefix="pykeep-run-"))
        self.python = python
        home = self.workspace / "home"
        home.mkdir()
        cache = client.CACHE or str(home / ".cache")
        self.write("environment.json", json.dumps({"XDG_CACHE_HOME": cache, **(environment or {})}))
        self.environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home)}
        self.secret = self.new_secret()
        self.epoch = self.port = None
        self.after = 0
        self.sent = 0

    def write(self, name, text):
        (self.run / name).write_text(text)

    def new_secret(self):
        self.secret = secrets.token_hex(32)
        self.write("secret", self.secret)
        return self.secret

    def command(self, *words):
        return [sys.executable, "-I", str(MAIN), "--run", str(self.run), *words]

    def start_command(self, *words):
        words = ["start", "--python", self.python, "--workspace", str(self.workspace), *words]
        return self.command(*words)

    def start(self, *words, ok=True):
        done = subprocess.run(
            self.start_command(*words), env=self.environment, capture_output=True, text=True, timeout=90
        )
        assert done.stderr == "", done.stderr
        report = json.loads(done.stdout)
        assert report["ok"] is ok and done.returncode == (0 if ok else 1), report
        if ok:
            self.adopt(report)
        return report

    def adopt(self, state):
        if self.epoch is None or state["epoch"].split("-")[0] != self.epoch.split("-")[0]:
            self.after = 0  # another relay: its records have other numbers
        self.epoch = state["epoch"]
        self.port = state["port"]
        if state["sent"] is not None:
            self.sent = state["sent"]

    # ---- requests

    def request(self, method, path, body=b"", headers=None, timeout=60):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        given = {"X-Pykeep-Secret": self.secret} if headers is None else headers
        connection.request(method, path, body, given)
        response = connection.getresponse()
        if response.status >= 300:
            raise Refused(response.status, response.read())
        return response, connection

    def state(self):
        return json.loads(self.request("GET", "/state")[0].read())

    def signal(self, what):
        self.request("POST", f"/signal?what={what}")[0].read()

    def exchange(self, header=None, send=None, after=None, **query):
        """One request; a frame's number is `sent` + 1 unless it is given."""
        body = header if isinstance(header, bytes) else frame(header) if header else b""
        query = {"epoch": self.epoch, "after": self.after if after is None else after, **query}
        if body:
            query["send"] = self.sent + 1 if send is None else send
        answer = Answer(*self.request("POST", "/exchange?" + urllib.parse.urlencode(query), body))
        if body:
            self.sent = max(self.sent, query["send"])
        return answer

    def records(self, header=None, **query):
        """One exchange to its end; they count as seen."""
        records = self.exchange(header, **query).all()
        self.after = records[-1]["seq"]
        return records

    def execute(self, code, **arguments):
        self.cell = self.sent + 1
        return {"op": "execute", "id": self.cell, "code": code, "can_ask": False, **arguments}

    def run_cell(self, code, **arguments):
        """A cell to its end, with as many exchanges as that takes: ((kind, text)…, what it ended with)."""
        seen = self.records(self.execute(code, **arguments))
        while seen[-1]["why"] == "acknowledge":
            seen += self.records()
        assert seen[-1]["why"] in ("done", "exit"), seen[-1]
        return seen

    def value(self, code):
        """text/plain of the cell's value."""
        records = self.run_cell(code)
        shown = [r["header"] for r in records if r["is"] == "frame" and r["header"]["ev"] == "display"]
        assert shown, records
        return shown[-1]["data"]["text/plain"]

    # ---- the processes, from outside

    def pid(self, name):
        return json.loads((self.run / f"{name}.json").read_text())["pid"]

    def signal_relay(self, number=SIGKILL):
        os.kill(self.pid("relay"), number)
        deadline = time.monotonic() + 30
        while alive(self.pid("relay")) and number == SIGKILL:
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def close(self):
        for name in ("kernel", "relay"):
            try:
                os.kill(self.pid(name), SIGKILL)
            except (OSError, ValueError):
                pass
        shutil.rmtree(self.run, ignore_errors=True)
        shutil.rmtree(self.workspace, ignore_errors=True)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def text(records, kind="stdout"):
    return b"".join(record.payload for record in records if record["is"] == kind)


def events(records):
    """What came, in order and for reading: ["started", "stdout", "done", "end"]. How text was cut up on its
    way says nothing."""
    names = [r["header"]["ev"] if r["is"] == "frame" else r["is"] for r in records]
    return [n for i, n in enumerate(names) if n not in ("stdout", "stderr") or names[i - 1 : i] != [n]]
