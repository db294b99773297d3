"""The commands of the documentation that its tests do not run as they stand: why, and what runs them instead."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Elsewhere:
    begins: str  # of the command
    why: str
    instead: str = ""  # a file of the repository that runs it, or what it does


ELSEWHERE = [
    Elsewhere("claude mcp add", "needs Claude Code and an account; client-config writes the same entry"),
    Elsewhere("curl --fail-with-body -T", "the ticket is made up", "tests/end_to_end/test_transfers.py"),
    Elsewhere("uv pip compile", "asks the package index; the locks are in the repository"),
    Elsewhere("python3 -I <package>/pykeep_guest/main.py", "runs in a guest", "tests/kernel/conftest.py"),
    # Minutes and 1 GB: ./dev test builds this one first, for all tests of kernels.
    Elsewhere("pykeep template build", "takes minutes and the network; ./dev test does it first", "dev"),
    Elsewhere("apt-get install ./dist/pykeep", "changes the system", "tests/packages/test_deb.py"),
    Elsewhere("uvx --find-links dist", "needs the packages", "tests/packages/test_wheel.py"),
    Elsewhere("python3 -m venv own", "needs the packages", "tests/packages/test_wheel.py"),
    Elsewhere("own/bin/pip install", "needs the packages", "tests/packages/test_wheel.py"),
    Elsewhere("own/bin/pykeep run", "needs the packages", "tests/packages/test_wheel.py"),
    Elsewhere("npx -y --package=./dist", "needs the packages", "tests/packages/test_npm.py"),
    Elsewhere("tar -xf dist/", "needs the packages", "tests/packages/test_tarball.py"),
    Elsewhere("pykeep-0.1.0-linux-x86_64/bin/pykeep", "needs the packages", "tests/packages/test_tarball.py"),
    Elsewhere("docker run", "needs Docker; umoci and runc's rules stand in", "tests/packages/test_image.py"),
    # "Setting it up" of docs/operations.md is run as root, with copies of what it changes.
    Elsewhere("apt-get install bubblewrap", "changes the system", "dev"),
    Elsewhere("systemctl enable", "needs systemd as process 1"),
    Elsewhere("systemctl restart", "needs systemd as process 1"),
    Elsewhere(
        "runuser -u pykeep -- env PYKEEP_STATE_DIR=/var/lib/pykeep pykeep template", "as template build"
    ),
    *(
        Elsewhere(begins, "changes the system", "tests/docs/test_setting_up.py")
        for begins in ("install -m", "install -d", "useradd", "printf 'alice", "echo 'PYKEEP_", "runuser")
    ),
]


def entry_for(text: str) -> Elsewhere | None:
    return next((entry for entry in ELSEWHERE if text.startswith(entry.begins)), None)
