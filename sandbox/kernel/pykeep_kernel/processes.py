"""Child processes: forked ones never speak for the kernel, spawned ones find the cells' functions."""

import ast
import os
import sys
import tempfile

from pykeep_kernel import streams

_LITERALS = (bool, int, float, complex, str, bytes, type(None))
_MAX_LITERAL = 10_000

# Runs in a spawned child as its __main__. A name it cannot provide becomes a function that raises:
# a worker that died of it instead would leave its Pool waiting for ever.
_PRELUDE = '''\
"""Definitions of the session's cells, for multiprocessing's child processes."""
import linecache as _linecache

def _define(name, source):
    _linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    try:
        exec(compile(source, name, "exec"), globals())
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
    from pykeep_kernel import imports

    imports.when_imported(
        "multiprocessing.spawn", lambda module: _describe_main(module, shell)
    )


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
        definitions = _definitions(source)
        if definitions:
            parts.append(f"_define({f'Cell In[{number}]'!r}, {definitions!r})\n")
    path = os.path.join(tempfile.gettempdir(), f"pykeep-main-{os.getpid()}.py")
    with open(path, "w", encoding="utf-8", errors="pykeep") as file:
        file.write("".join(parts))
    return path


def _definitions(source):
    """The cell with all but its imports and definitions blanked out, so that line numbers stay."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ""
    lines = source.splitlines()
    kept = [""] * len(lines)
    for node in _defining(tree.body):
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        for index in range(first - 1, node.end_lineno):
            kept[index] = lines[index]
    return "\n".join(kept).rstrip() + "\n" if any(kept) else ""


def _defining(body):
    for node in body:
        if isinstance(
            node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        ):
            yield node


def end_forked_child():
    """A forked child came back from the cell that forked it: it has nothing more to do."""
    streams.flush()
    os._exit(0)
