"""What the tests of packages share: dist/ as `./dev package` made it, a bare environment, an empty root, and the
main job that every installed pykeep is asked to do."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
sys.path.insert(0, str(ROOT / "packaging"))

from mcp_client import Client  # noqa: E402

PNG = b"\x89PNG\r\n\x1a\n"
CHART = """
import matplotlib.pyplot as plt
plt.plot(fib, marker='o')
plt.title('Fibonacci numbers')
plt.show()
"""


@pytest.fixture(scope="session")
def dist():
    """dist(PATTERN): the package of that name."""

    def find(pattern):
        found = sorted((ROOT / "dist").glob(pattern))
        if not found:
            pytest.skip(f"no {pattern} in dist/: ./dev package makes it")
        return found[-1]

    return find


@pytest.fixture(scope="session")
def template() -> str:
    """The Python that kernels get where a package does not bring one."""
    path = os.environ.get("PYKEEP_TEMPLATE")
    if not path:
        pytest.skip("no Python environment for kernels: ./dev test builds one")
    return str(pathlib.Path(path).resolve())


@pytest.fixture
def bare(tmp_path) -> dict:
    """The environment of somebody who has set nothing."""
    home = tmp_path / "home"
    home.mkdir()
    return {"HOME": str(home), "PATH": "/usr/bin:/bin"}


@pytest.fixture(scope="module")
def empty_root(tmp_path_factory):
    """A file's own copy of build/empty-root, which its tests may change."""
    if os.geteuid() != 0:
        pytest.skip("only root can make another root directory")
    made = ROOT / "build" / "empty-root"
    if not (made / "complete").exists():
        pytest.skip("no build/empty-root: ./dev test makes it (build/empty-root.log)")
    root = tmp_path_factory.mktemp("root") / "root"
    subprocess.run(["cp", "-a", "--reflink=auto", made, root], check=True)
    yield root
    shutil.rmtree(root)


def in_root(root, *command, shown="") -> list:
    """The command line that runs a command in a root directory."""
    return [str(ROOT / "tests/packages/in_root.sh"), str(root), shown, *command]


def main_job(command, *, env, cwd, version=None) -> None:
    """What the demo shows, in short: variables stay, a chart is an image, a mistake is a traceback, and the
    server ends with its client."""
    with Client(command, env=env, cwd=cwd, timeout=120) as client:
        info = client.connect()["serverInfo"]
        assert info["name"] == "pykeep" and version in (None, info["version"])
        first = client.call_tool(
            "run_python",
            {"code": "fib = [0, 1]\nwhile len(fib) <= 30: fib.append(fib[-1] + fib[-2])\nfib[30]"},
        )
        assert "832040" in first.text, first.text
        chart = client.call_tool("run_python", {"code": CHART})
        assert [mime for mime, _ in chart.images] == ["image/png"], chart.text
        assert chart.images[0][1].startswith(PNG)
        mistake = client.call_tool("run_python", {"code": "1 / 0"})
        assert mistake.is_error and "ZeroDivisionError" in mistake.text
        client.call_tool("close_session", {"session": first.execution["session"]})
        assert client.close(20) == 0, client.stderr
