"""Fixtures for tests of the program as a client sees it: PYKEEP_BINARY, over real pipes."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))

from mcp_client import Client  # noqa: E402


def program(variable: str) -> str:
    path = os.environ.get(variable)
    if not path:
        pytest.skip(f"{variable} does not name a program")
    return path


@pytest.fixture
def environment(tmp_path):
    """The environment of a server that must not touch the user's own state. AddressSanitizer keeps
    little of what is freed, so that the memory of a server says something."""
    sanitizer = (
        os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:thread_local_quarantine_size_kb=64"
    )
    return {**os.environ, "PYKEEP_STATE_DIR": str(tmp_path / "state"), "ASAN_OPTIONS": sanitizer}


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
