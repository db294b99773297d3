"""Child processes: forked ones do not speak for the kernel, spawned ones find cells' functions."""

import os
import re
import subprocess
import tempfile

from pykeep_kernel import streams, tracebacks

_LITERALS = (bool, int, float, complex, str, bytes, type(None))
_MAX_LITERAL = 10_000
_KEPT_FILES = 8
_files = []  # (text, path) of the modules written for spawned children
_DEFINITION = re.compile(r"\b(?:import|def|class)\b")

# Runs in a spawned child as its __main__. A name it cannot provide becomes a function that raises:
# a worker that died of it instead would leave its Pool waiting for ever.
_PRELUDE = '''\
"""Definitions of the session's cells, for multiprocessing's child processes."""
import ast as _ast
import linecache as _linecache

_DEFINING = (
    _ast.Import, _ast.ImportFrom, _ast.FunctionDef, _ast.AsyncFunctionDef, _ast.ClassDef
)

def _define(name, source):
    _linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    try:
        tree = _ast.parse(source)
        tree.body = [node for node in tree.body if isinstance(node, _DEFINING)]
        exec(compile(tree, name, "exec"), globals())
    except Exception:
        pass

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    def missing(*_arguments, **_options):
        raise RuntimeError(
            f"{name} does not exist in this spawned process: only functions, classes, imports and "
            "simple constants of the session's cells do. Put it into a .py file and import it, or "
            "use multiprocessing's fork method."
        )
    missing.__name__ = missing.__qualname__ = name
    return missing

'''


def install(link, shell):
    os.register_at_fork(before=streams.flush, after_in_child=link.close_in_child)
    os.system = _system
    from pykeep_kernel import imports

    imports.when_imported("multiprocessing.spawn", lambda module: _describe_main(module, shell))


def _system(command):
    """Run a command in a subshell; its wait status. (C's own ignores SIGINT until it has ended.)"""
    code = subprocess.call(command, shell=True)
    return code << 8 if code >= 0 else -code


def _describe_main(spawn, shell):
    original = spawn.get_preparation_data

    def get_preparation_data(name):
        data = original(name)
        data.pop("init_main_from_name", None)
        data["init_main_from_path"] = _write_main(shell)
        return data

    spawn.get_preparation_data = get_preparation_data


def _write_main(shell):
    """Writes a module with what a child needs from the cells, and nothing that has side effects."""
    parts = [_PRELUDE]
    for name, value in list(shell.user_ns.items()):
        if not name.startswith("_") and type(value) in _LITERALS:
            text = repr(value)
            if len(text) <= _MAX_LITERAL and text not in ("nan", "inf", "-inf"):
                parts.append(f"{name} = {text}\n")
    for number, source in enumerate(shell.history_manager.input_hist_parsed):
        if _DEFINITION.search(source):
            parts.append(f"_define({tracebacks.CELL_NAME.format(number)!r}, {source!r})\n")
    return _file_of("".join(parts))


def _file_of(text):
    """A file of its own for each text, complete from its first moment: children that started before
    may be reading the last one, and a forkserver loads a path only once."""
    if not _files or _files[-1][0] != text:
        handle, path = tempfile.mkstemp(prefix="pykeep-main-", suffix=".py")
        with open(handle, "w", encoding="utf-8", errors="pykeep") as file:
            file.write(text)
        _files.append((text, path))
    if len(_files) > _KEPT_FILES:
        try:
            os.unlink(_files.pop(0)[1])
        except OSError:
            pass
    return _files[-1][1]


def end_forked_child():
    """A forked child came back from the cell that forked it: it has nothing more to do."""
    streams.flush()
    os._exit(0)
