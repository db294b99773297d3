"""The .deb, in a root with nothing but apt: what it depends on is enough, and it leaves nothing behind."""

import os
import re
import shutil
import subprocess

from conftest import in_root, main_job

ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
# A person, who is not root, in a home of their own.
PERSON = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "env", "HOME=/tmp/home"]
NOWHERE = "http://127.0.0.1:9"  # what is in apt's cache has to be enough
KEPT_BY_APT = re.compile(r"^(var/(lib/(dpkg|apt)|log|cache)|proc|dev|sys|tmp)(/|$)")


def apt(root, *arguments):
    options = ["-y", "-qq", "--no-install-recommends", "-o", f"Acquire::http::Proxy={NOWHERE}"]
    command = in_root(root, "apt-get", *options, *arguments)
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files(root) -> set:
    found = set()
    for folder, names, others in os.walk(root):
        inside = os.path.relpath(folder, root)
        found |= {os.path.normpath(os.path.join(inside, name)) for name in names + others}
    return {path for path in found if not KEPT_BY_APT.match(path)}


def test_without_bubblewrap_it_says_what_is_missing(dist, empty_root):
    subprocess.run(["dpkg-deb", "-x", dist("pykeep_*_amd64.deb"), empty_root / "tmp/pykeep"], check=True)
    command = in_root(empty_root, "/tmp/pykeep/usr/bin/pykeep", "doctor")
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "apt-get install bubblewrap" in done.stdout + done.stderr
    shutil.rmtree(empty_root / "tmp/pykeep")


def test_installed_used_and_removed(dist, empty_root, template):
    package = dist("pykeep_*_amd64.deb")
    version = package.name.split("_")[1]
    inside = empty_root / "tmp" / package.name
    inside.write_bytes(package.read_bytes())
    (empty_root / "tmp/home").mkdir()
    os.chown(empty_root / "tmp/home", 1000, 1000)

    (empty_root / template[1:]).mkdir(parents=True)  # where in_root.sh will show it
    before = files(empty_root)
    apt(empty_root, "install", f"/tmp/{package.name}")
    installed = files(empty_root) - before
    assert "usr/bin/pykeep" in installed and "usr/lib/systemd/system/pykeep.service" in installed
    assert not (empty_root / "etc/systemd/system/multi-user.target.wants/pykeep.service").exists()

    server = in_root(empty_root, *PERSON, f"PYKEEP_TEMPLATE={template}", "pykeep", shown=template)
    main_job(server, env=ENVIRONMENT, cwd="/", version=version)

    apt(empty_root, "purge", "pykeep")
    without = files(empty_root)  # but with what it depended on
    assert not [path for path in without - before if "pykeep" in path.lower()]
    apt(empty_root, "install", f"/tmp/{package.name}")
    apt(empty_root, "remove", "pykeep")
    assert files(empty_root) == without
