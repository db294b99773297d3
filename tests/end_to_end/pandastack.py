"""The stand-in for PandaStack (tests/fake_pandastack) as fixtures: `fake`, which counts, and the `environment` of a
server that has its sessions there."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.request

import pytest
from conftest import environment_in

FAKE = pathlib.Path(__file__).parents[1] / "fake_pandastack"
KEY = "pds_local_dev_token"


class Fake:
    def __init__(self):
        command = [sys.executable, str(FAKE), "0", "--until", str(os.getpid())]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("fake pandastack ready on "):
            pytest.fail(f"the stand-in does not start: {line!r}")
        self.base = line.split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)

    def ask(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def counters(self):
        return self.ask("GET", "/_fake/counters")

    def requests(self):
        return sum(self.counters()["requests"].values())

    def strikes(self, switch):
        """How often a switch has struck."""
        return self.counters()["faults"].get(switch, 0)

    def faults(self):
        return sum(self.counters()["faults"].values())

    def sandboxes(self):
        """Those that exist, by id -> status."""
        return self.counters()["sandboxes"]

    def defects(self, **switches):
        """These, and no other."""
        self.ask("POST", "/_fake/defects", {"reset": True, **switches})

    def tick(self, seconds):
        self.ask("POST", "/_fake/tick", {"seconds": seconds})


@pytest.fixture(scope="module")
def fake():
    for variable in ("PYKEEP_TEMPLATE", "PYKEEP_IMAGE_TOOL"):
        if not os.environ.get(variable):
            pytest.skip(f"{variable} is not set: the stand-in's guests need it")
    pytest.importorskip("aiohttp")
    with Fake() as fake:
        yield fake


@pytest.fixture
def environment(fake, tmp_path):
    fake.defects()
    variables = environment_in(tmp_path)
    for name in ("PANDASTACK_TOKEN", "http_proxy", "https_proxy"):
        variables.pop(name, None)
    variables |= {"PYKEEP_BACKEND": "pandastack", "PANDASTACK_API": fake.base, "PANDASTACK_API_KEY": KEY}
    yield variables
    fake.defects()
    for sandbox in fake.sandboxes():  # of this test; those that fail leave some
        with contextlib.suppress(OSError):
            fake.ask("DELETE", f"/v1/sandboxes/{sandbox}")


def python(client, code, **more):
    return client.call_tool("run_python", {"code": code, **more})


def value(client, code, **more):
    result = python(client, code, **more)
    assert not result.is_error, result.text
    return result.text


def handle_of(result):
    return re.search(r"session=\"([a-z0-9-]+)\"", result.text)[1]


def kill(client):
    client.process.kill()
    client.process.wait()
