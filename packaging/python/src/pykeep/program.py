"""Where the program is, and which Python its kernels get."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path


def path() -> str:
    """The program that this package carries, to be started with `environment()`."""
    return str(Path(__file__).parent / "bin" / "pykeep")


def environment() -> dict[str, str]:
    """Ours, and PYKEEP_TEMPLATE unless it is set: kernels then have the packages that are installed
    beside this one. The option --template goes before it. PYKEEP_LAUNCHER is what `pykeep client-config`
    has clients start."""
    template = own_environment()
    launcher = Path(sys.prefix) / "bin" / "pykeep"
    return {
        **({"PYKEEP_TEMPLATE": template} if template else {}),
        **({"PYKEEP_LAUNCHER": str(launcher)} if launcher.exists() else {}),
        **os.environ,
    }


def own_environment() -> str | None:
    """The environment this Python runs in as `--template` takes it; None if kernels could not run in
    it, and pykeep has to look for another."""
    ipython = importlib.util.find_spec("IPython")
    if not ipython or not ipython.origin or not _is_shown(Path(ipython.origin)):
        return None
    return sys.prefix if sys.prefix != sys.base_prefix else sys.executable


def _is_shown(file: Path) -> bool:
    """Whether a sandbox shows it: its interpreter's own directories, of /usr without /usr/local; not
    the packages in a home directory (`pip install --user`)."""
    for prefix in {Path(sys.prefix), Path(sys.base_prefix)}:
        if prefix == Path("/usr") and Path("/usr/local") in file.parents:
            continue
        if prefix in file.parents:
            return True
    return False
