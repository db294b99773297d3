#!/usr/bin/env python3
"""lint.py BUILD TOOLS: every check that reads the sources only. Prints what each found."""

import os
import pathlib
import re
import subprocess
import sys
import time

MAX_LINES = 700
NOT_CODE = {".md", ".txt", ".json", ".lock"}


def tracked(*patterns: str) -> list[str]:
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns]
    names = subprocess.run(listing, check=True, capture_output=True, text=True).stdout
    return sorted(name for name in names.split("\0") if name and os.path.exists(name))


def run(*command: str) -> bool:
    return subprocess.run(command).returncode == 0


def shell_scripts() -> list[str]:
    def is_shell(name: str) -> bool:
        with open(name, "rb") as file:
            return file.readline(32).startswith((b"#!/bin/sh", b"#!/bin/bash"))

    return [name for name in tracked() if is_shell(name)]


def clang_tidy(build: str, units: list[str]) -> bool:
    root = re.escape(os.getcwd())
    command = ["run-clang-tidy-19", "-quiet", "-p", build, *(f"^{root}/{re.escape(name)}$" for name in units)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    progress = re.compile(r"\[|Running clang-tidy|\d+ warnings? generated|$")
    lines = [line for line in done.stdout.splitlines() if not progress.match(line)]
    print("\n".join(lines), end="\n" if lines else "")
    return done.returncode == 0


def file_sizes() -> bool:
    long = []
    for name in tracked():
        if pathlib.Path(name).suffix in NOT_CODE or name == "LICENSE":
            continue
        lines = pathlib.Path(name).read_bytes().count(b"\n")
        if lines > MAX_LINES:
            long.append(f"{name}: {lines} lines; split it, {MAX_LINES} is the end")
    print("\n".join(long), end="\n" if long else "")
    return not long


def main() -> int:
    build, tools = sys.argv[1:3]
    sources = tracked("*.cpp", "*.hpp")
    # One translation unit a process; headers are seen through the sources that include them.
    units = [name for name in sources if name.endswith(".cpp") and not name.startswith("tests/")]
    checks = {
        "clang-format": lambda: run(f"{tools}/clang-format", "--dry-run", "-Werror", *sources),
        "clang-tidy": lambda: clang_tidy(build, units),
        "layers": lambda: run("bash", "tests/layers.sh"),
        "co_await lint": lambda: run(sys.executable, "tests/co_await_lint.py"),
        "shellcheck": lambda: run("shellcheck", "-x", *shell_scripts()),
        "ruff format": lambda: run(f"{tools}/ruff", "format", "--check", "-q", "."),
        "ruff": lambda: run(f"{tools}/ruff", "check", "-q", "."),
        "file sizes": file_sizes,
    }
    failed = []
    for name, check in checks.items():
        started = time.monotonic()
        ok = check()
        print(f"{'ok    ' if ok else 'FAILED'} {name} ({time.monotonic() - started:.1f} s)", flush=True)
        if not ok:
            failed.append(name)
    print(f"{len(checks) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
