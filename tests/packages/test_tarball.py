"""The tarball: unpacked anywhere, it runs."""

import re
import subprocess
import sys
import tarfile

from conftest import ROOT, main_job
from release import ALLOWED_LIBRARIES, needed_glibc, needed_libraries


def unpacked(archive, place):
    with tarfile.open(archive) as tar:
        tar.extractall(place, filter="data")
    return next(place.iterdir())


def test_runs_from_any_folder(dist, bare, template, tmp_path):
    tree = unpacked(dist("pykeep-*.tar.gz"), tmp_path / "a folder with spaces")
    version = re.search(r"pykeep-(\S+)-linux", tree.name)[1]
    main_job([tree / "bin/pykeep"], env={**bare, "PYKEEP_TEMPLATE": template}, cwd=tmp_path, version=version)


def test_says_which_glibc_it_needs(dist, tmp_path):
    tree = unpacked(dist("pykeep-*.tar.gz"), tmp_path / "unpacked")
    program = tree / "bin/pykeep"
    assert needed_libraries(program) <= ALLOWED_LIBRARIES
    assert f"glibc {needed_glibc(program)} or newer" in (tree / "INSTALL.md").read_text()


def test_the_man_page_names_every_command(dist, tmp_path):
    tree = unpacked(dist("pykeep-*.tar.gz"), tmp_path / "unpacked")
    page = (tree / "share/man/man1/pykeep.1").read_text()
    usage = subprocess.run([tree / "bin/pykeep", "--help"], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^  ([a-z][a-z-]+) {2,}", usage.split("Subcommands:")[1], re.MULTILINE)
    assert len(commands) > 5
    missing = [command for command in commands if f".B {command}\n" not in page.replace("\\-", "-")]
    assert not missing, f"packaging/pykeep.1 says nothing of {missing}"


def test_packages_of_the_same_program_are_the_same(dist, tmp_path):
    dist("pykeep-*.tar.gz")  # skips where nothing is built
    made = [tmp_path / "first", tmp_path / "second"]
    for place in made:
        package = [ROOT / "packaging/package.py", ROOT / "build/release", place, "tarball", "deb", "wheel"]
        subprocess.run([sys.executable, *package], check=True)
    first, second = ({path.name: path.read_bytes() for path in place.iterdir()} for place in made)
    different = [name for name in first if first[name] != second[name]]
    assert len(first) == 3 and not different
