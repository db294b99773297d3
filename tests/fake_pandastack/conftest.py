import shutil
import subprocess

import pytest
import running


def can_enter():
    words = ["bwrap", "--unshare-all", "--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "ALL"]
    return subprocess.run([*words, "--ro-bind", "/", "/", "true"], capture_output=True).returncode == 0


@pytest.fixture(scope="session")
def server():
    pytest.importorskip("aiohttp", reason="aiohttp is not there (./dev test brings it)")
    if not shutil.which("bwrap") or not can_enter():
        pytest.skip("bubblewrap cannot make a guest here")
    with running.Running() as server:
        yield server
    assert server.process.returncode == 0


@pytest.fixture
def api(server):
    """The server as it was at its start."""
    yield running.Api(server.port)
    server.reset()


@pytest.fixture
def sandbox(api):
    return api.create()
