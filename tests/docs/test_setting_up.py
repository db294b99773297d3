"""The steps of docs/operations.md, "Setting it up", by root in a mount namespace that has copies of what they change."""

import os
import subprocess

import pytest
from elsewhere import entry_for
from pages import ROOT, commands

CHANGED = ["/etc", "/usr/local/bin", "/var/lib"]


def steps() -> list[str]:
    page = [command.text for command in commands() if command.page == "docs/operations.md"]
    first = next(i for i, text in enumerate(page) if text.startswith("install -m 755"))
    last = next(i for i, text in enumerate(page) if text.startswith("systemctl"))
    own = "tests/docs/test_setting_up.py"
    return [text for text in page[first:last] if (entry_for(text) and entry_for(text).instead == own)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can follow these steps")
def test_a_service_is_set_up(binary, tmp_path):
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("no mount namespace here")
    if subprocess.run(["id", "pykeep"], capture_output=True).returncode == 0:
        pytest.skip("this machine has a user pykeep already")
    script = ["set -e", "mount --make-rprivate /"]
    for path in CHANGED:
        copy = tmp_path / path.strip("/").replace("/", "-")
        what = f"cp -a {path}" if path != "/var/lib" else "mkdir -p"
        script += [f"{what} {copy}", f"mount --bind {copy} {path}"]
    script += ["mkdir -p /etc/systemd/system", *steps(), "id pykeep", "stat -c '%U %a' /etc/pykeep/tokens"]
    script = [line.replace("build/release/pykeep", binary) for line in script]
    # The state directory of the tests is root's, and so is the environment that they name.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYKEEP_")}
    environment["PATH"] = "/usr/local/bin:" + environment["PATH"]
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", "\n".join(script)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
    )
    if "absent    kernel" in done.stdout and "IPython" in done.stdout:
        pytest.skip("the system's Python has no IPython, and no template is built here")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Safe: sessions can be started." in done.stdout
    assert "(pykeep)" in done.stdout and "root 640" in done.stdout
