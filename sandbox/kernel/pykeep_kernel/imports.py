"""Runs a function when a module has been imported, without importing anything itself."""

import sys

_waiting = {}


class _Watcher:
    """First on sys.meta_path; a look into a dict for every import, and nothing else for most."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in _waiting:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is _Watcher or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    _wrap(name, spec.loader)
                return spec
        return None


def _wrap(name, loader):
    original = loader.exec_module

    def exec_module(module):
        original(module)
        callback = _waiting.pop(name, None)
        if callback is not None:
            _call(callback, module)

    try:
        loader.exec_module = exec_module
    except AttributeError:
        pass  # a loader that cannot be watched: the module works, our support for it does not


def _call(callback, module):
    try:
        callback(module)
    except Exception as error:  # our support must never break the user's import
        sys.stderr.write(f"pykeep: no support for {module.__name__}: {error!r}\n")


def when_imported(name, callback):
    """Calls callback(module) after `name` was imported; at once if it already is."""
    module = sys.modules.get(name)
    if module is not None:
        _call(callback, module)
        return
    _waiting[name] = callback
    if _Watcher not in sys.meta_path:
        sys.meta_path.insert(0, _Watcher)
