"""What all packages are made of: the installed tree of build/release, its version, what it needs."""

import functools
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent
PROJECT = json.loads((HERE / "project.json").read_text())

# What every glibc system has (PEP 600 allows these and more in manylinux wheels).
ALLOWED_LIBRARIES = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}


def run(*command, **options):
    """Runs a program quietly; when it fails, says what it said."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise SystemExit(f"package: {' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")
    return done.stdout


def needed_glibc(program) -> str:
    """The newest version of glibc's symbols that the program refers to, as "2.36"."""
    versions = re.findall(r"\bGLIBC_(\d+)\.(\d+)", run("objdump", "-T", program))
    return "{}.{}".format(*max((int(major), int(minor)) for major, minor in versions))


def needed_libraries(program) -> set:
    return set(re.findall(r"NEEDED +(\S+)", run("objdump", "-p", program)))


class Release:
    """`build`: the CMake directory with the shipped program; `dist`: where packages go."""

    def __init__(self, build: pathlib.Path, dist: pathlib.Path):
        self.build, self.dist = build.absolute(), dist.absolute()
        cache = (self.build / "CMakeCache.txt").read_text()
        self.version = re.search(r"^CMAKE_PROJECT_VERSION:\w+=(\S+)$", cache, re.MULTILINE)[1]
        self.scratch = self.build / "packages"
        self.dist.mkdir(exist_ok=True)
        # Files in packages are as old as the commit they are of, so that who builds it again gets the same.
        self.epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or self._commit_time())
        os.environ["SOURCE_DATE_EPOCH"] = str(self.epoch)

    @functools.cached_property
    def tree(self) -> pathlib.Path:
        """<tree>/bin/pykeep, stripped, and <tree>/share, as cmake/packages.cmake lays them out."""
        tree = self.fresh("tree")
        run("cmake", "--install", self.build, "--strip", "--component", "program", "--prefix", tree)
        foreign = needed_libraries(tree / "bin" / "pykeep") - ALLOWED_LIBRARIES
        if foreign:
            raise SystemExit(
                f"package: the program needs {', '.join(sorted(foreign))}: is it the release build?"
            )
        return tree

    @property
    def program(self) -> pathlib.Path:
        return self.tree / "bin" / "pykeep"

    def fresh(self, name: str) -> pathlib.Path:
        """An empty directory to lay a package out in."""
        directory = self.scratch / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        return directory

    def deliver(self, file: pathlib.Path, name: str) -> pathlib.Path:
        shutil.move(file, self.dist / name)
        return self.dist / name

    @staticmethod
    def _commit_time() -> str:
        asked = ["git", "-C", ROOT, "log", "-1", "--format=%ct"]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() or "0"


def write_tar(directory: pathlib.Path, prefix: str, output: pathlib.Path, epoch: int):
    """<output>.tar.gz of a directory, the same bytes for the same files."""

    def plain(entry: tarfile.TarInfo):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = epoch
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    with open(output, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, epoch) as zipped:
        with tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar:
            tar.add(directory, prefix, recursive=False, filter=plain)
            for path in sorted(directory.rglob("*")):
                tar.add(path, f"{prefix}/{path.relative_to(directory)}", recursive=False, filter=plain)
