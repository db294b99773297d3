"""Starts real kernels over a socket pair (client.py); no sandbox, no C++.

PYKEEP_TEST_PYTHON names the interpreter the kernels run with, by default the one running pytest. What
it lacks (pandas, matplotlib, ...) is skipped, with its name.
"""

import functools
import os
import subprocess

import client
import guest
import pytest
import through_relay

THROUGH_RELAY = os.environ.get("PYKEEP_TEST_THROUGH") == "relay"
if THROUGH_RELAY:
    client.Kernel = through_relay.Kernel


@functools.cache
def has(module):
    command = [client.PYTHON, "-I", "-c", f"import importlib.util as u; assert u.find_spec('{module}')"]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


def pytest_configure(config):
    config.addinivalue_line("markers", "needs(*modules): skipped if the kernel's Python lacks them")
    config.addinivalue_line(
        "markers", "own_link: about descriptor 3 as the server's own; not through a relay"
    )


def pytest_runtest_setup(item):
    if THROUGH_RELAY and item.get_closest_marker("own_link"):
        pytest.skip("about a link without a relay")
    for mark in item.iter_markers("needs"):
        for module in mark.args:
            if not has(module):
                pytest.skip(f"{client.PYTHON} has no {module}")


@pytest.fixture(scope="session", autouse=True)
def _one_cache(tmp_path_factory):
    """Fonts are scanned once, not once a kernel."""
    client.CACHE = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def shared():
    kernel = client.Kernel()
    yield kernel
    kernel.close()


@pytest.fixture
def kernel(shared):
    """A kernel shared by the tests of a file, so that they also test what they do to each other."""
    assert shared.process.poll() is None, "an earlier test ended the kernel"
    return shared


@pytest.fixture
def fresh():
    """A kernel of the test's own: for what may end it, or depends on its first cell."""
    kernel = client.Kernel()
    yield kernel
    kernel.close()


@pytest.fixture
def new_guest():
    """A guest (docs/guest-relay.md) in which nothing was started."""
    made = guest.Guest()
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared_guest():
    made = guest.Guest()
    made.start()
    made.records()
    yield made
    made.close()


@pytest.fixture
def vm(shared_guest):
    """A guest with a kernel that is ready, shared by the tests of this file."""
    shared_guest.adopt(shared_guest.state())
    return shared_guest


@pytest.fixture
def own(new_guest):
    """The same for one test alone."""
    new_guest.start()
    assert guest.events(new_guest.records()) == ["ready", "end"]
    return new_guest
