"""%pip: installs into the session's own directory, layered over a read-only environment.

The environment comes first on sys.path: an installed package adds to it and cannot replace (and
break) what the kernel itself runs on.
"""

import importlib
import os
import shlex
import site
import subprocess
import sys
import sysconfig

# Where nothing can be reached, waiting for it is pointless.
_FAST_FAILURE = {"PIP_RETRIES": "0", "PIP_TIMEOUT": "2"}


class Packages:
    def __init__(self, workspace):
        self._network = False
        self._prefix = os.path.join(workspace, ".packages")
        variables = {"base": self._prefix, "platbase": self._prefix}
        self._site = sysconfig.get_path("purelib", "posix_prefix", variables)

    def install(self):
        """Makes pip, also as `!pip` or a subprocess, install where this session finds it."""
        os.environ.setdefault("PIP_PREFIX", self._prefix)
        os.environ.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")
        os.environ.setdefault("PIP_NO_INPUT", "1")
        os.environ.setdefault("PIP_NO_WARN_SCRIPT_LOCATION", "1")
        os.environ.setdefault("PIP_PROGRESS_BAR", "off")
        os.environ.setdefault("PIP_ROOT_USER_ACTION", "ignore")
        os.environ.setdefault("PYTHONPATH", self._site)
        # `!python` and `!pip` mean this environment's.
        path = os.environ.get("PATH", os.defpath).split(os.pathsep)
        ours = [os.path.dirname(sys.executable), *path, os.path.join(self._prefix, "bin")]
        os.environ["PATH"] = os.pathsep.join(dict.fromkeys(ours))
        self.look_around()

    def look_around(self):
        """What can be reached from this sandbox, and what was installed in its workspace before."""
        self._network = _has_network()
        for name, value in _FAST_FAILURE.items():
            if not self._network:
                os.environ.setdefault(name, value)
            elif os.environ.get(name) == value:
                del os.environ[name]
        # Only then: it writes to what the import system remembers of each directory of the template.
        if os.path.isdir(self._site):
            self.refresh()

    def refresh(self):
        """After an installation: what is new can be imported at once, .pth files included."""
        if os.path.isdir(self._site):
            site.addsitedir(self._site, set(sys.path))
        importlib.invalidate_caches()

    def pip(self, line):
        """The %pip magic: runs pip with the kernel's interpreter."""
        command = [sys.executable, "-m", "pip", *shlex.split(line)]
        code = subprocess.call(command, stdin=subprocess.DEVNULL)
        self.refresh()
        if code:
            hint = "" if self._network else " (there is no network here: only files can be installed)"
            sys.stderr.write(f"%pip ended with exit code {code}{hint}\n")
        return code


def _has_network():
    """Whether there is any route but the loopback's."""
    for name, skipped in (("/proc/net/route", 1), ("/proc/net/ipv6_route", 0)):
        try:
            with open(name, encoding="ascii") as file:
                lines = file.read().splitlines()[skipped:]
        except OSError:
            continue
        if any(line.split()[-1 if not skipped else 0] != "lo" for line in lines if line.split()):
            return True
    return False
