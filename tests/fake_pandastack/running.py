"""The fake as a process of its own, and how tests talk to it. For other folders' tests, too."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

TOKEN = "pds_local_dev_token"
LIMIT = 60  # seconds, for every wait

needs_packages = pytest.mark.skipif("PYKEEP_TEMPLATE" not in os.environ, reason="PYKEEP_TEMPLATE is not set")
needs_images = pytest.mark.skipif(
    "PYKEEP_IMAGE_TOOL" not in os.environ, reason="PYKEEP_IMAGE_TOOL is not set"
)


def served(command, port):
    """Starts a server in a guest, and waits until it listens."""
    listens = f"grep -qs ':{port:04X} [0-9A-F]*:0000 0A ' /proc/net/tcp /proc/net/tcp6"
    return f"setsid {command} >/dev/null 2>&1 & until {listens}; do sleep 0.02; done"


@dataclass
class Answer:
    status: int
    headers: dict
    data: bytes

    @property
    def body(self):
        """Its JSON, keys in their order."""
        return json.loads(self.data)


class Api:
    """One connection: requests with the key that is accepted."""

    def __init__(self, port, token=TOKEN):
        self.port, self.token = port, token
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)

    def request(self, method, path, body=None, headers=None):
        """`body`: bytes as they are, or what becomes JSON. Without one a POST has an empty one."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if data is None and method in ("POST", "PUT", "PATCH"):
            data = b""
        given = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            self.connection.request(method, path, body=data, headers=given | (headers or {}))
            with self.connection.getresponse() as response:
                return Answer(response.status, dict(response.getheaders()), response.read())
        except (http.client.HTTPException, OSError):
            self.connection.close()
            raise

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.request("POST", path, {} if body is None else body, **more)

    def patch(self, path, body, **more):
        return self.request("PATCH", path, body, **more)

    def put(self, path, body, **more):
        return self.request("PUT", path, body, **more)

    def delete(self, path, **more):
        return self.request("DELETE", path, **more)

    # ---- what most tests do ----

    def create(self, **asked):
        """The path of a new sandbox."""
        made = self.post("/v1/sandboxes", {"template": "code-interpreter", "ttl_seconds": 900} | asked)
        assert made.status == 201, made
        return "/v1/sandboxes/" + made.body["id"]

    def run(self, sandbox, command):
        done = self.post(sandbox + "/exec", {"cmd": command})
        assert done.status == 200, done
        return done.body

    def output(self, sandbox, command):
        done = self.run(sandbox, command)
        assert done["exit_code"] == 0, done
        return done["stdout"]


class Running:
    """The process. `defects`: as its command line has them."""

    def __init__(self, *defects, environment=None):
        words = [sys.executable, str(Path(__file__).parent), "0", "--until", str(os.getpid())]
        for defect in defects:
            words += ["--defect", defect]
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, text=True, env=os.environ | (environment or {})
        )
        line = self.process.stdout.readline()
        assert line.startswith("fake pandastack ready on http://127.0.0.1:"), line
        self.url = line.split(" on ")[1].strip()
        self.port = int(self.url.rsplit(":", 1)[1])
        self.control = Api(self.port, token=None)

    def set(self, **defects):
        answer = self.control.post("/_fake/defects", defects)
        assert answer.status == 200, answer
        return answer.body

    def reset(self):
        """As at the start."""
        assert self.control.post("/_fake/reset").status == 200

    def counters(self):
        return self.control.get("/_fake/counters").body

    def tick(self, seconds):
        return self.control.post("/_fake/tick", {"seconds": seconds}).body

    def expire(self, sandbox=None):
        return self.control.post("/_fake/expire", {"id": sandbox.rsplit("/", 1)[1]} if sandbox else {}).body

    def agent_restart(self):
        return self.control.post("/_fake/agent-restart").body

    def kill(self):
        """As the power does."""
        self.process.kill()
        self.process.wait(LIMIT)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            self.stop()
