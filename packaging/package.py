#!/usr/bin/env python3
"""package.py BUILD DIST [KIND...]: makes packages of the program in BUILD; all kinds, or those named.

Run by `./dev package`, which brings what it needs; packaging/README.md says what each kind is.
"""

import hashlib
import json
import os
import pathlib
import shutil
import sys

from icon import write_icon
from release import HERE, PROJECT, ROOT, Release, needed_glibc, run, write_tar

MACHINE = "x86_64"  # the only one kernel images are written for
TOOLS = ROOT / "build"  # what ./dev brought: package-tools/, packaging-tools/


def tarball(release: Release):
    name = f"pykeep-{release.version}-linux-{MACHINE}"
    tree = release.fresh("tarball")
    shutil.copytree(release.tree, tree, dirs_exist_ok=True)
    notes = (
        (HERE / "tarball.md").read_text().format(glibc=needed_glibc(release.program), version=release.version)
    )
    (tree / "INSTALL.md").write_text(notes)
    write_tar(tree, name, release.dist / f"{name}.tar.gz", release.epoch)
    return release.dist / f"{name}.tar.gz"


def deb(release: Release):
    scratch = release.fresh("deb")
    run("cpack", "-G", "DEB", "--config", release.build / "CPackConfig.cmake", "-B", scratch)
    package = next(scratch.glob("*.deb"))
    return release.deliver(package, package.name)


def wheel(release: Release):
    source = release.fresh("wheel")
    shutil.copytree(HERE / "python", source, dirs_exist_ok=True)
    shutil.copy(ROOT / "LICENSE", source)
    (source / "src/pykeep/bin").mkdir()
    shutil.copy(release.program, source / "src/pykeep/bin/pykeep")
    platform = f"manylinux_{needed_glibc(release.program).replace('.', '_')}_{MACHINE}"
    settings = {**os.environ, "PYKEEP_VERSION": release.version, "PYKEEP_WHEEL_PLATFORM": platform}
    build = [
        TOOLS / "package-tools/bin/python",
        "-m",
        "hatchling",
        "build",
        "-t",
        "wheel",
        "-d",
        source / "dist",
    ]
    run(*build, cwd=source, env=settings)
    made = next((source / "dist").glob("*.whl"))
    return release.deliver(made, made.name)


def npm(release: Release):
    source = release.fresh("npm")
    shutil.copytree(HERE / "npm", source, dirs_exist_ok=True)
    shutil.copy(ROOT / "LICENSE", source)
    (source / "bin").mkdir()
    shutil.copy(release.program, source / "bin/pykeep")
    manifest = json.loads((source / "package.json").read_text())
    (source / "package.json").write_text(
        json.dumps({**manifest, "version": release.version}, indent=2) + "\n"
    )
    run("npm", "pack", "--pack-destination", source, cwd=source)
    return release.deliver(source / f"pykeep-{release.version}.tgz", f"pykeep-npm-{release.version}.tgz")


def mcpb(release: Release):
    bundle = release.fresh("mcpb")
    manifest = json.loads((HERE / "mcpb/manifest.json").read_text())
    (bundle / "manifest.json").write_text(
        json.dumps({**manifest, "version": release.version}, indent=2, ensure_ascii=False) + "\n"
    )
    write_icon(bundle / "icon.png", 512)
    (bundle / "server").mkdir()
    shutil.copy(release.program, bundle / "server/pykeep")
    for text in ("LICENSE", "docs/security.md"):
        shutil.copy(ROOT / text, bundle)
    for path in bundle.rglob("*"):
        os.utime(path, (release.epoch, release.epoch))
    tool = TOOLS / "packaging-tools/node_modules/.bin/mcpb"
    run(tool, "validate", bundle / "manifest.json")
    output = release.dist / f"pykeep-{release.version}-linux-{MACHINE}.mcpb"
    run(tool, "pack", bundle, output)
    return output


def registry(release: Release):
    """server.json names the bundle's hash: that is the bundle in dist/, made now if it is not there."""
    bundle = release.dist / f"pykeep-{release.version}-linux-{MACHINE}.mcpb"
    if not bundle.exists():
        mcpb(release)
    values = {
        "VERSION": release.version,
        "MCPB_SHA256": hashlib.sha256(bundle.read_bytes()).hexdigest(),
        "MCPB_NAME": bundle.name,
        **{key.upper(): value for key, value in PROJECT.items()},
    }
    text = (HERE / "registry/server.json").read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    output = release.dist / "server.json"
    output.write_text(json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n")
    return output


KINDS = [tarball, deb, wheel, npm, mcpb, registry]


def main() -> int:
    build, dist, *wanted = sys.argv[1:]
    unknown = set(wanted) - {kind.__name__ for kind in KINDS}
    if unknown:
        raise SystemExit(
            f"package: no kind {', '.join(unknown)}; there are {', '.join(k.__name__ for k in KINDS)}"
        )
    release = Release(pathlib.Path(build), pathlib.Path(dist))
    for kind in KINDS:
        if not wanted or kind.__name__ in wanted:
            made = kind(release)
            print(f"{made.relative_to(release.dist.parent)} ({made.stat().st_size:,} bytes)", flush=True)
    print(f"the program needs glibc {needed_glibc(release.program)} or newer, and bubblewrap to run code")
    return 0


if __name__ == "__main__":
    sys.exit(main())
