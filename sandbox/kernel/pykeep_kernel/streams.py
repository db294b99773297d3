"""sys.stdout and sys.stderr: real files, buffered for speed, flushed for order."""

import codecs
import fcntl
import io
import os
import sys
import time

# A line is flushed at once while there is credit. A cell that prints faster than that is flushed
# once a window, so that 100,000 prints cost a few hundred system calls and not 100,000. (No thread
# flushes the rest of such a burst: it comes with the next print, sleep, child, display or the end.)
_WINDOW_SECONDS = 0.1
_LINES_PER_WINDOW = 100

_FLUSHING_EVENTS = frozenset(("subprocess.Popen", "os.posix_spawn", "time.sleep"))

_write = io.TextIOWrapper.write
_monotonic = time.monotonic

_wait = None  # what must have happened before more is printed
_streams = {}
_originals = {}  # descriptor -> (a spare copy of it, its identity)


def _replacement(error):
    """Lone surrogates (print("\\ud800"), undecodable file names) become U+FFFD."""
    return b"\xef\xbf\xbd" * (error.end - error.start), error.end


codecs.register_error("pykeep", _replacement)


class Stream(io.TextIOWrapper):
    def __init__(self, fd, name):
        raw = io.FileIO(fd, "w", closefd=False)
        raw.name = name
        super().__init__(
            io.BufferedWriter(raw, 1 << 16),
            encoding="utf-8",
            errors="pykeep",
            newline="\n",
            write_through=True,
        )
        self.mode = "w"
        self._window_end = 0.0
        self._credit = 0

    def write(self, text):
        if _wait is not None:
            _settle()
        written = _write(self, text)
        now = _monotonic()
        if now >= self._window_end:
            self._window_end = now + _WINDOW_SECONDS
            self._credit = _LINES_PER_WINDOW
            self.flush()
        elif self._credit and text[-1:] in ("\n", "\r"):
            self._credit -= 1
            self.flush()
        return written


def wait_before_text(wait):
    """Has `wait` called before anything more is printed, if anything is."""
    global _wait
    _wait = wait


def _settle():
    global _wait
    wait, _wait = _wait, None
    if wait is not None:
        wait()


def install():
    for fd, attribute in ((1, "stdout"), (2, "stderr")):
        spare = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 4)  # 3 is the link's, which may still be to come
        _originals[fd] = (spare, _identity(spare))
        _streams[attribute] = Stream(fd, f"<{attribute}>")
        setattr(sys, attribute, _streams[attribute])
        setattr(sys, f"__{attribute}__", _streams[attribute])
    sys.addaudithook(_audit)


def reconnect():
    """After a thaw: descriptors 1 and 2 lead to another server."""
    for fd, (spare, _) in _originals.items():
        os.dup2(fd, spare, inheritable=False)
        _originals[fd] = (spare, _identity(spare))


def _identity(fd):
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


def _audit(event, _arguments):
    # What was printed before a child process starts comes before what the child prints, and what
    # was printed before a sleep does not wait for its end.
    if event in _FLUSHING_EVENTS:
        if _wait is not None:
            _settle()
        flush()


def restore():
    """Before each cell: descriptors 1 and 2 lead to the server again, whatever the last cell did.

    A working object that the user put into sys.stdout stays (as in a notebook); a closed one goes.
    """
    for fd, (spare, identity) in _originals.items():
        try:
            intact = _identity(fd) == identity
        except OSError:
            intact = False
        if not intact:
            try:
                os.dup2(spare, fd)
            except OSError:
                pass  # the spare was closed as well: nothing is left to restore from
    for attribute, stream in list(_streams.items()):
        stream._window_end = 0.0
        if stream.closed:
            fd = 1 if attribute == "stdout" else 2
            stream = _streams[attribute] = Stream(fd, f"<{attribute}>")
            setattr(sys, f"__{attribute}__", stream)
        current = getattr(sys, attribute, None)
        if current is not stream and not _usable(current):
            setattr(sys, attribute, stream)


def _usable(stream):
    try:
        return callable(stream.write) and not getattr(stream, "closed", False)
    except Exception:
        return False


def flush():
    """Brings everything printed so far to the pipes; never fails."""
    for stream in (sys.stdout, sys.stderr, _streams["stdout"], _streams["stderr"]):
        try:
            stream.flush()
        except Exception:
            pass  # closed, replaced by something odd, or its descriptor is gone


def flush_all():
    """Before a frame: also what C code, called through ctypes, may have left in stdio's buffers."""
    flush()
    ctypes = sys.modules.get("ctypes")
    if ctypes is not None:
        try:
            ctypes.pythonapi.fflush(None)
        except Exception:
            pass


def write_error(text):
    """Writes to the kernel's own stderr, after everything printed so far."""
    flush()
    try:
        _streams["stderr"].write(text)
        _streams["stderr"].flush()
    except Exception:
        pass
