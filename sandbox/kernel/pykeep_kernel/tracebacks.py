"""Tracebacks as the reader needs them: the cell's own lines, no frames of ours, bounded."""

import os
import re
import sys
import threading
import traceback
import warnings

import IPython

CELL_NAME = "<cell {}>"  # the file name a cell is compiled under; pdb wants the brackets

_HEAD_FRAMES = 8
_TAIL_FRAMES = 16
_MAX_MESSAGE = 4000
_MAX_TOTAL = 16000
_MAX_CHAIN = 6

_HIDDEN = (
    os.path.dirname(os.path.abspath(IPython.__file__)) + os.sep,
    os.path.dirname(os.path.abspath(__file__)) + os.sep,
    "<decorator-gen-",
    "<frozen importlib",
)
_GAP = "<gap>"
_CELL_LINE = re.compile(r'File "<cell (\d+)>", (line \d+)(?:, in <module>)?')
_GAP_LINE = re.compile(r'File "<gap>", line (\d+)(?:, in .*)?')
# Where packages lie on this machine says nothing to the reader, and is long.
_PACKAGE_FILE = re.compile(r"""(^|(?<=["' (]))/[^\s"']*/((?:site|dist)-packages/)""", re.MULTILINE)
_CELL_MAGIC = re.compile(r"get_ipython\(\)\.run_cell_magic\('(\w+)', '([^']*)'")


def describe(error):
    """(name, value, lines) of an exception, for an `error` frame. Never raises."""
    try:
        name = type(error).__name__
        value = _clip(_text_of(error), _MAX_MESSAGE)
        return name, value, _lines(error)
    except BaseException as failure:  # MemoryError, a hostile exception class
        name = getattr(type(error), "__name__", "Exception")
        return name, "", [f"{name} (its traceback could not be shown: {type(failure).__name__})"]


def _text_of(error):
    try:
        return str(error)
    except Exception as failure:
        return f"<its text could not be made: {type(failure).__name__} in __str__>"


def _lines(error):
    if type(error).__name__ == "UsageError":  # IPython's: wrong use of a %magic
        return [f"UsageError: {_clip(_text_of(error), _MAX_MESSAGE)}"]
    report = traceback.TracebackException(type(error), error, error.__traceback__, lookup_lines=False)
    only_cells = isinstance(error, KeyboardInterrupt)
    if only_cells:
        report.__cause__ = report.__context__ = None
    _shorten(report, only_cells, _MAX_CHAIN)
    text = shorten_paths("".join(_clip(part, _MAX_MESSAGE) for part in report.format()))
    text = _GAP_LINE.sub(r"[... \1 more calls ...]", _CELL_LINE.sub(r"Cell In[\1], \2", text))
    if len(text) > _MAX_TOTAL:
        text = text[: _MAX_TOTAL // 4] + "\n[...]\n" + text[-_MAX_TOTAL * 3 // 4 :]
    return text.rstrip("\n").split("\n")


def _shorten(report, only_cells, depth):
    """Leaves out our frames and the middle of deep stacks, in the whole chain of causes."""
    frames = [frame for frame in report.stack if not frame.filename.startswith(_HIDDEN)]
    if only_cells:
        frames = [frame for frame in frames if frame.filename.startswith("<cell ")][-2:]
    left_out = len(frames) - _HEAD_FRAMES - _TAIL_FRAMES
    if left_out > 1:
        gap = traceback.FrameSummary(_GAP, left_out, "gap", lookup_line=False, line="")
        frames[_HEAD_FRAMES:-_TAIL_FRAMES] = [gap]
    report.stack[:] = map(_as_typed, frames)
    for attribute in ("__cause__", "__context__"):
        linked = getattr(report, attribute)
        if linked is not None and depth == 0:
            setattr(report, attribute, None)
        elif linked is not None:
            _shorten(linked, only_cells, depth - 1)
    for member in getattr(report, "exceptions", None) or []:
        _shorten(member, only_cells, max(0, depth - 1))


def _as_typed(frame):
    """`%%bash` rather than the call that IPython makes of it, with the whole script as one line."""
    magic = frame.filename.startswith("<cell ") and _CELL_MAGIC.match(frame.line or "")
    if not magic:
        return frame
    line = f"%%{magic[1]} {magic[2]}".rstrip()
    return traceback.FrameSummary(frame.filename, frame.lineno, frame.name, lookup_line=False, line=line)


def shorten_paths(text):
    return _PACKAGE_FILE.sub(r".../\2", text)


def _clip(text, limit):
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} [... {len(text) - 2 * half:,} characters ...] {text[-half:]}"


def remember(error):
    """What %debug and pdb.pm() look at."""
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error


def let_go(error):
    """After a MemoryError: what its frames hold is not kept until the next error, or no cell that
    follows has memory to run in."""
    if isinstance(error, MemoryError):
        traceback.clear_frames(error.__traceback__)


def install():
    """Warnings and errors of threads, which Python writes to stderr itself, look the same."""
    original = warnings.formatwarning

    def format_warning(message, category, filename, lineno, line=None):
        text = original(message, category, filename, lineno, line)
        return shorten_paths(re.sub(r"^<cell (\d+)>:", r"Cell In[\1]:", text))

    def in_thread(arguments):
        if arguments.exc_type is SystemExit or sys.stderr is None:
            return
        name = arguments.thread.name if arguments.thread else "a thread"
        error = arguments.exc_value or arguments.exc_type()
        lines = "\n".join(describe(error)[2])
        sys.stderr.write(f"Exception in {name}:\n{lines}\n")

    warnings.formatwarning = format_warning
    threading.excepthook = in_thread
