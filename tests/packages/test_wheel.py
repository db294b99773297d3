"""The wheel: uvx and pip install it, and its kernels run in the environment it is in."""

import os
import re
import subprocess
import zipfile

import pytest
from conftest import ROOT, main_job
from release import ALLOWED_LIBRARIES, needed_glibc, needed_libraries

UV = ROOT / "build/uv"


@pytest.fixture
def uv(bare) -> dict:
    """The environment to run uv in: the package registry as it is set up here, a cache that stays."""
    if not (UV / "bin/uvx").exists():
        pytest.skip("no uv: ./dev test brings it")
    registry = {name: os.environ[name] for name in os.environ if name.startswith(("UV_", "SSL_"))}
    return {**bare, **registry, "UV_CACHE_DIR": str(UV / "cache"), "UV_PYTHON_DOWNLOADS": "never"}


def entries(wheel, name):
    with zipfile.ZipFile(wheel) as archive:
        path = next(path for path in archive.namelist() if path.endswith(name))
        return archive.read(path), archive.getinfo(path)


def test_the_tag_is_what_the_program_needs(dist, tmp_path):
    wheel = dist("*.whl")
    program = tmp_path / "pykeep"
    data, entry = entries(wheel, "pykeep/bin/pykeep")
    program.write_bytes(data)
    assert entry.external_attr >> 16 & 0o111, "the program is not executable"
    assert needed_libraries(program) <= ALLOWED_LIBRARIES
    tag = f"py3-none-manylinux_{needed_glibc(program).replace('.', '_')}_x86_64"
    assert wheel.name.endswith(f"-{tag}.whl")
    about = entries(wheel, ".dist-info/WHEEL")[0].decode()
    assert f"Tag: {tag}" in about and "Root-Is-Purelib: false" in about


def test_the_extra_is_what_templates_hold(dist):
    about = entries(dist("*.whl"), ".dist-info/METADATA")[0].decode()
    extra = set(re.findall(r"^Requires-Dist: (\S+); extra == 'data'$", about, re.MULTILINE))
    lines = (ROOT / "sandbox/template/requirements.in").read_text().splitlines()
    wanted = {line for line in lines if line and not line.startswith("#")}
    sorted_specifiers = {re.sub(r">=6,<7", "<7,>=6", line) for line in wanted}
    assert extra | {"ipython"} == sorted_specifiers
    assert re.search(r"^Requires-Dist: ipython$", about, re.MULTILINE)


def test_uvx_needs_nothing_else(dist, uv, tmp_path):
    wheel = dist("*.whl")
    version = wheel.name.split("-")[1]
    command = [UV / "bin/uvx", "--quiet", "--find-links", wheel.parent, "--from", "pykeep[data]", "pykeep"]
    subprocess.run([*command, "--version"], env=uv, cwd=tmp_path, check=True, timeout=500)
    main_job(command, env=uv, cwd=tmp_path, version=version)


@pytest.fixture
def own(dist, uv, tmp_path):
    """An environment with the wheel and what it asks for."""
    subprocess.run([UV / "bin/uv", "venv", "-q", "own"], env=uv, cwd=tmp_path, check=True)
    install = [UV / "bin/uv", "pip", "install", "-q", "--python", "own/bin/python", dist("*.whl")]
    subprocess.run(install, env=uv, cwd=tmp_path, check=True)
    return tmp_path / "own"


def test_kernels_get_the_environment_it_is_installed_in(uv, own):
    def answer(code, **variables):
        run = [own / "bin/python", "-m", "pykeep", "run", "-c", code]
        done = subprocess.run(run, env={**uv, **variables}, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    assert str(own) in answer("import sys; sys.prefix")
    assert "no Python environment at /nowhere/else" in answer("1", PYKEEP_TEMPLATE="/nowhere/else")


def test_programs_of_yours_use_it(dist, uv, own):
    code = "from pykeep.client import Python\nwith Python() as python: print(python.run('import sys; sys.prefix').text)"
    done = subprocess.run(
        [own / "bin/python", "-c", code], env=uv, capture_output=True, text=True, check=False
    )
    assert str(own) in done.stdout, done.stderr


def test_clients_are_told_to_start_it(uv, own):
    said = subprocess.run(
        [own / "bin/pykeep", "client-config", "claude-desktop"],
        env=uv,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f'"{own}/bin/pykeep"' in said.stdout
