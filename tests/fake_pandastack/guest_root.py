"""A guest's disk: a directory that bubblewrap makes the root of a system of its own.

    root/    /, writable: /workspace, /root, /tmp, /run, /opt, /etc ...
    local/   /usr/local, a Python environment as a template's is: bin/python3 starts Python through the image
             loader, so that its memory can be carried over to another guest (memory.py)

The rest of /usr is the host's, read-only.
"""

import os
import shutil
import sys
from pathlib import Path

HOST = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"]
DIRECTORIES = [
    "dev",
    "etc",
    "home",
    "mnt",
    "opt",
    "proc",
    "root",
    "run",
    "srv",
    "tmp",
    "usr",
    "var/tmp",
    "workspace",
]
FROM_ETC = ["alternatives", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "mime.types", "ssl"]
INIT = Path(__file__).with_name("guest_init.py")
LOADER = "/usr/local/libexec/loader"

PYTHON = """#!/bin/sh
exec {loader} boot /usr/local/bin/{name} "$@"
"""

# Programs that start another Python do so by this name, and are to get one that can be carried, too.
SITE = """import sys
sys.executable = "/usr/local/bin/python3"
"""

ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1\tlocalhost sandbox\n",
    "hostname": "sandbox\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "resolv.conf": "nameserver 1.1.1.1\nnameserver 8.8.8.8\n",
    "os-release": 'PRETTY_NAME="code-interpreter"\nID=debian\n',
}

ENVIRONMENT = {
    "HOME": "/root",
    "LOGNAME": "root",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "SHELL": "/bin/bash",
    "USER": "root",
    "SSH_CLIENT": "10.200.0.1 40000 22",
    "SSH_CONNECTION": "10.200.0.1 40000 10.200.0.6 22",
}


class Python:
    """The environment that guests get: a template's, or just the Python that runs the fake."""

    def __init__(self, template=None, loader=None):
        self.home = Path(sys.base_prefix) / "bin"
        self.name = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.packages = None
        self.loader = loader
        if template:
            template = Path(template).resolve()
            self.packages = next(template.glob("lib/python3*/site-packages"))
            self.name = self.packages.parent.name
            for line in (template / "pyvenv.cfg").read_text().splitlines():
                if line.startswith("home = "):
                    self.home = Path(line[7:])

    @property
    def program(self):
        return self.home / self.name


def make(directory, python):
    root, local = directory / "root", directory / "local"
    for name in DIRECTORIES:
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    (root / "var/tmp").chmod(0o1777)
    (root / "root").chmod(0o700)
    for path in HOST[1:]:
        if os.path.islink(path):
            os.symlink(os.readlink(path), root / path[1:])
        elif os.path.isdir(path):
            (root / path[1:]).mkdir()
    for name, text in ETC.items():
        (root / "etc" / name).write_text(text)
    for name in FROM_ETC:
        if os.path.isdir(f"/etc/{name}"):
            (root / "etc" / name).mkdir()
        elif os.path.exists(f"/etc/{name}"):
            shutil.copy(f"/etc/{name}", root / "etc" / name)
    site = root / "etc" / python.name
    site.mkdir()
    (site / "sitecustomize.py").write_text(SITE)
    make_local(local, python)


def make_local(local, python):
    for name in ("bin", "sbin", "libexec", "share", f"lib/{python.name}/site-packages"):
        (local / name).mkdir(parents=True)
    (local / "pyvenv.cfg").write_text(f"home = {python.home}\ninclude-system-site-packages = false\n")
    os.symlink(python.program, local / "bin" / python.name)
    start = local / "bin/python3"
    if python.loader:
        start.write_text(PYTHON.format(loader=LOADER, name=python.name))
        start.chmod(0o755)
        (local / "libexec/loader").touch()
    else:
        os.symlink(python.name, start)
    os.symlink("python3", local / "bin/python")


def command(directory, python, link, status, with_packages=True):
    """bubblewrap's words; `link` and `status` are descriptors."""
    root, local = directory / "root", directory / "local"
    words = ["bwrap", "--unshare-all", "--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "ALL"]
    words += ["--as-pid-1", "--die-with-parent", "--new-session", "--hostname", "sandbox", "--clearenv"]
    words += ["--bind", root, "/"]
    for path in HOST:
        if os.path.isdir(path) and not os.path.islink(path):
            words += ["--ro-bind", path, path]
    words += ["--bind", local, "/usr/local"]
    if python.packages and with_packages:
        words += ["--ro-bind", python.packages, f"/usr/local/lib/{python.name}/site-packages"]
    if not python.home.is_relative_to("/usr"):
        words += ["--ro-bind", python.home.parent, python.home.parent]
    if python.loader:
        words += ["--ro-bind", python.loader, LOADER]
    for name in FROM_ETC:
        if os.path.isdir(f"/etc/{name}"):
            words += ["--ro-bind", f"/etc/{name}", f"/etc/{name}"]
    words += ["--proc", "/proc", "--dev", "/dev", "--ro-bind", INIT, "/run/init.py"]
    words += ["--json-status-fd", status, "--", python.program, "-I", "-S", "/run/init.py", link]
    return [str(word) for word in words]
