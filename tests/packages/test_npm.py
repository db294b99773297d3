"""The npm package: `npx -y pykeep` runs the program, and nothing of Node.js beside it."""

import json
import os
import pathlib
import shutil
import subprocess
import tarfile

import pytest
from conftest import main_job


def test_npx_runs_it(dist, bare, template, tmp_path):
    node = shutil.which("npx")
    if not node:
        pytest.skip("no npx on this machine: ./dev test brings npm")
    package = dist("pykeep-npm-*.tgz")
    version = package.stem.rpartition("-")[2]
    registry = {name: os.environ[name] for name in os.environ if name.lower().startswith("npm_config_")}
    environment = {**registry, **bare, "PATH": f"{pathlib.Path(node).parent}:{bare['PATH']}"}
    command = [node, "-y", "--offline", f"--package={package}", "pykeep"]
    said = subprocess.run(
        [*command, "--version"], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert said.stdout.strip() == f"pykeep {version}", said.stderr
    main_job(command, env={**environment, "PYKEEP_TEMPLATE": template}, cwd=tmp_path, version=version)


def test_it_is_for_machines_that_can_run_it(dist):
    with tarfile.open(dist("pykeep-npm-*.tgz")) as tar:
        manifest = json.load(tar.extractfile("package/package.json"))
        assert tar.getmember("package/bin/pykeep").mode & 0o111
    assert (manifest["os"], manifest["cpu"], manifest["libc"]) == (["linux"], ["x64"], ["glibc"])
    assert "scripts" not in manifest and "dependencies" not in manifest
