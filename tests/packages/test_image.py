"""The OCI image: built without Docker, and run as its own configuration says, with what docs/install.md has a
container allow and no more: a user that is not root, no capabilities, our seccomp profile."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile

import pytest
from conftest import PNG, ROOT, Client, in_root, main_job

SMALL = "ipython\nmatplotlib\n"  # what the test's image holds instead of all that a template does


@pytest.fixture(scope="module")
def layout(dist, tmp_path_factory):
    """The image's layout, unpacked from the archive that build.sh made."""
    package = dist("pykeep_*_amd64.deb")
    if os.geteuid() != 0:
        pytest.skip("only root can run what is in another root directory")
    for tool in ("mmdebstrap", "umoci"):
        if not shutil.which(tool):
            pytest.skip(f"no {tool}: ./dev test brings it")
    place = tmp_path_factory.mktemp("image")
    shutil.copy(package, place)
    (place / "requirements.txt").write_text(SMALL)
    built = subprocess.run(
        [ROOT / "packaging/oci/build.sh", place, place / "requirements.txt"], capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr[-3000:]
    with tarfile.open(next(place.glob("pykeep-*-image.tar"))) as archive:
        archive.extractall(place / "layout", filter="data")
    yield place / "layout"
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def bundle(layout, tmp_path_factory):
    """The image as a container engine starts it: <bundle>/rootfs and a runtime configuration, by umoci."""
    version = json.loads((layout / "index.json").read_text())["manifests"][0]["annotations"]
    (tag,) = version.values()
    place = tmp_path_factory.mktemp("bundle") / "bundle"
    subprocess.run(["umoci", "unpack", "--image", f"{layout}:{tag}", place], check=True, capture_output=True)
    yield place
    shutil.rmtree(place)


def contained(bundle, *arguments):
    """The command line of a container of this image. The program is process 1, as it is without --init."""
    process = json.loads((bundle / "config.json").read_text())["process"]
    user = process["user"]
    assert user["uid"] != 0
    person = [f"--reuid={user['uid']}", f"--regid={user['gid']}", "--clear-groups", "--no-new-privs"]
    nothing = ["--bounding-set=-all", "--inh-caps=-all", "env", "-i", "-C", process["cwd"], *process["env"]]
    first = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "setpriv", *person, *nothing]
    profile = [sys.executable, ROOT / "tests/packages/with_seccomp.py", ROOT / "packaging/oci/seccomp.json"]
    return [*profile, *in_root(bundle / "rootfs", *first, *process["args"], *arguments)]


def test_every_blob_is_what_its_name_says(layout):
    blobs = list((layout / "blobs/sha256").iterdir())
    assert len(blobs) == 3
    for blob in blobs:
        assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name


def test_it_runs_unprivileged(bundle, dist):
    version = dist("pykeep_*_amd64.deb").name.split("_")[1]
    main_job(contained(bundle), env=dict(os.environ), cwd="/", version=version)


def test_it_can_isolate(bundle):
    done = subprocess.run(contained(bundle, "doctor"), capture_output=True, text=True)
    assert done.returncode == 0 and "Safe: sessions can be started." in done.stdout, done.stdout + done.stderr


def test_labels_of_other_scripts_are_drawn(bundle):
    """Without its fonts matplotlib says that fonts were not found or glyphs are missing, and draws boxes."""
    code = "import matplotlib.pyplot as plt\nplt.title('日本語 ⚑')\nplt.plot([1])\nplt.show()"
    with Client(contained(bundle), env=dict(os.environ), timeout=120) as client:
        client.connect()
        chart = client.call_tool("run_python", {"code": code})
    assert chart.images[0][1].startswith(PNG)
    assert "missing" not in chart.text and "not found" not in chart.text, chart.text
