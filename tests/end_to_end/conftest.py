"""Fixtures for tests of the program as a client sees it: PYKEEP_BINARY, over real pipes.

Most tests of what cells do take `run`: the server and its kernel are shared by a file, so that the
tests also show what a session bears. A test that may end the kernel takes `fresh`.
"""

import functools
import os
import pathlib
import re
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from mcp_client import Client  # noqa: E402


def program(variable: str) -> str:
    path = os.environ.get(variable)
    if not path:
        pytest.skip(f"{variable} does not name a program")
    return path


def with_sanitizer(limit):
    """A bound on memory or processor time that holds for the program as shipped and with
    AddressSanitizer; ThreadSanitizer costs more of both."""
    return limit * 1.7 if os.environ.get("PYKEEP_SANITIZE") == "thread" else limit


def pytest_configure(config):
    config.addinivalue_line("markers", "needs(*modules): skipped if the kernel's Python lacks them")


def until(condition, limit=20.0):
    """What `condition` gives once that is true; fails when it does not become so in time."""
    end = time.monotonic() + limit
    while not (value := condition()):
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.02)
    return value


def environment_in(directory):
    """The environment of a server that must not touch the user's own state. AddressSanitizer keeps
    little of what is freed, so that the memory of a server says something."""
    sanitizer = (
        os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:thread_local_quarantine_size_kb=64"
    )
    return {**os.environ, "PYKEEP_STATE_DIR": str(directory / "state"), "ASAN_OPTIONS": sanitizer}


def best_of_three(limit, measure):
    """Asserts that what `measure()` gives is below a limit, at the latest the third time: a machine that stalls
    now and then spoils one of them, a program that is slow all."""
    seen = []
    while len(seen) < 3:
        seen.append(measure())
        if seen[-1] < limit:
            return
    raise AssertionError(f"none of {seen} is below {limit}")


def at_leisure(seconds):
    """A bound on work of the processor that is meant for the program as shipped. With a sanitizer it does more,
    and ctest runs others beside it."""
    return seconds * 3 if os.environ.get("PYKEEP_SANITIZE") else seconds


def put_on_disk(work, end=Client.close):
    """Ends the input of a server, which leaves it 1.4 s for putting its kernels on disk. `work()` starts it and
    gives the client and what the test needs, which is returned; it is done anew where the machine stalled so
    long that there was no time for that."""
    for _ in range(3):
        client, needed = work()
        begun = time.monotonic()
        status = end(client)
        taken = time.monotonic() - begun
        if taken < 1.2:
            break
    assert (status, taken < 2) == (0, True), f"it ended with {status} after {taken} s"
    return needed


@pytest.fixture
def environment(tmp_path):
    return environment_in(tmp_path)


@pytest.fixture
def start(environment):
    """start(*arguments, era=..., ...) -> a connected client of the program; all are closed at the end."""
    clients = []

    def start(*arguments, connect=True, **options):
        options.setdefault("env", environment)
        client = Client([program("PYKEEP_BINARY"), *arguments], **options)
        clients.append(client)
        if connect:
            client.connect()
        return client

    yield start
    for client in clients:
        client.close()


@pytest.fixture(params=["legacy", "modern"])
def server(start, request):
    """A connected client of a fresh server, once for each era of the protocol."""
    return start(era=request.param)


@pytest.fixture
def test_server(environment):
    """A connected client of the server with the fixture tools, which need no sandbox."""
    with Client([program("PYKEEP_TEST_SERVER")], env=environment) as client:
        client.connect()
        yield client


class Runner:
    """run(code, wait=..., stdin=..., ...) -> ToolResult of run_python, in one session."""

    def __init__(self, client, session=None):
        self.client = client
        self.session = session

    def __call__(self, code, **arguments):
        return self.client.call_tool("run_python", self.arguments(code, **arguments))

    def start(self, code, *, progress=False, **arguments):
        """The id of a call that is not waited for."""
        params = {"name": "run_python", "arguments": self.arguments(code, **arguments)}
        return self.client.start("tools/call", params, progress=progress)

    def tool(self, name, /, **arguments):
        if self.session:
            arguments["session"] = self.session
        return self.client.call_tool(name, arguments)

    def arguments(self, code, **arguments):
        session = {"session": self.session} if self.session else {}
        return {"code": code, **session, **arguments}


@functools.cache
def has(run, module):
    return run(f"import importlib.util as u; print(u.find_spec({module!r}) is not None)").text == "True\n"


def check_needs(request, run):
    for mark in request.node.iter_markers("needs"):
        for module in mark.args:
            if not has(run, module):
                pytest.skip(f"the kernel's Python has no {module}")


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory):
    command = [program("PYKEEP_BINARY")]
    with Client(command, env=environment_in(tmp_path_factory.mktemp("shared"))) as client:
        client.connect()
        run = Runner(client)
        run("pass")  # the first result announces its session
        yield run
        client.close()


@pytest.fixture
def run(request, shared_server):
    check_needs(request, shared_server)
    return shared_server


@pytest.fixture
def fresh(request, shared_server):
    """Another session of the same server, of the test's own."""
    check_needs(request, shared_server)
    client = shared_server.client
    handle = re.search(r"session[ =\"]+([a-z2-7]{20,})", client.call_tool("create_session").text)[1]
    run = Runner(client, handle)
    run("pass")
    yield run
    client.call_tool("close_session", {"session": handle})
