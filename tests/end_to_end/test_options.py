"""Options that make no sense are refused before anything is started, with exit code 2."""

import os
import subprocess

import pytest
from conftest import program


def pykeep(environment, *arguments, timeout=60):
    return subprocess.run(
        [program("PYKEEP_BINARY"), *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["--memory", "-1"],
        ["--memory", "0"],
        ["--memory", "99999999999TiB"],
        ["--memory", "2 parsecs"],
        ["--disk", ""],
        ["--processes", "0"],
        ["--max-kernels", "0"],
        ["--log-level", "verbose"],
        ["--upload-root", "/no/such/directory"],
        ["--keep", "0"],
        ["--no-such-option"],
        ["no-such-command"],
    ],
    ids=" ".join,
)
def test_refused(arguments, environment):
    done = pykeep(environment, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr


def test_also_from_the_environment(environment):
    done = pykeep({**environment, "PYKEEP_LOG_LEVEL": "verbose"})
    assert done.returncode == 2 and "log-level" in done.stderr.lower()


@pytest.mark.parametrize("size", ["512MiB", "512m", "536870912", "1G"])
def test_sizes(size, environment):
    done = pykeep(environment, "--memory", size)
    assert done.returncode == 0, done.stderr


@pytest.mark.needs("matplotlib")
def test_run_makes_the_directory_for_its_charts(environment, tmp_path):
    code = "import matplotlib.pyplot as plt; plt.plot([1, 2])"
    directory = tmp_path / "not" / "yet"
    done = pykeep(environment, "run", "-c", code, "--output", str(directory), timeout=120)
    assert done.returncode == 0, done.stderr
    assert (directory / "pykeep-1.png").read_bytes().startswith(b"\x89PNG")
    assert str(directory / "pykeep-1.png") in done.stdout
    (directory / "pykeep-1.png").write_text("mine")
    again = pykeep(environment, "run", "-c", code, "--output", str(directory), timeout=120)
    assert str(directory / "pykeep-2.png") in again.stdout, again.stderr
    assert (directory / "pykeep-1.png").read_text() == "mine"


def test_the_state_directory_is_its_users_alone_whatever_makes_it(environment):
    """Else `pykeep http` would not keep MCP sessions there."""
    pykeep(environment, "doctor", timeout=120)
    assert os.stat(environment["PYKEEP_STATE_DIR"]).st_mode & 0o777 == 0o700
