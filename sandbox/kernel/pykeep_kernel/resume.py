"""After a thaw: a kernel finds its way in another sandbox, and shares nothing with its twins."""

import ctypes
import os
import sys
import tempfile

from pykeep_kernel import streams, template


def resume(kernel, reason, environment):
    """`reason`: "template", "snapshot", "wake" or "fork" (docs/kernel-link.md)."""
    kernel.link.reconnect()
    streams.reconnect()
    os.environ.update(environment)
    kernel.packages.look_around()
    _enter(kernel.workspace, anew=reason == "template")
    _make_directories(kernel.shell)
    _stir()
    if reason in ("template", "fork"):
        _reseed()


def _enter(workspace, anew):
    try:
        if not anew:
            os.getcwd()
            return
    except OSError:
        pass  # it was below /tmp, say, and is not there any more
    os.chdir(workspace)


def _make_directories(shell):
    """A sandbox begins with an empty /tmp and home; what libraries made there once they expect."""
    os.makedirs(tempfile.gettempdir(), exist_ok=True)
    os.makedirs(shell.profile_dir.location, exist_ok=True)
    matplotlib = sys.modules.get("matplotlib")
    if matplotlib is not None:
        try:
            for directory in (matplotlib.get_configdir(), matplotlib.get_cachedir()):
                os.makedirs(directory, exist_ok=True)
        except OSError:
            return
        template.copy_font_cache(matplotlib)


def _stir():
    """OpenSSL's generator, which no reseeding below reaches and nobody wants to see repeated."""
    ssl = sys.modules.get("_ssl")
    if ssl is not None:
        ssl.RAND_add(os.urandom(32), 32.0)


def _reseed():
    """The rest of what is random draws from the system each time: secrets, uuid4, default_rng()."""
    random = sys.modules.get("random")
    if random is not None:
        random.seed(os.urandom(32))
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed(list(os.urandom(32)))
    tempfile._name_sequence = None
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None:
        multiprocessing.current_process().authkey = os.urandom(32)
    library = ctypes.CDLL(None)
    seed = ctypes.c_uint(int.from_bytes(os.urandom(4), "little"))
    library.srand(seed)
    library.srand48(seed)
