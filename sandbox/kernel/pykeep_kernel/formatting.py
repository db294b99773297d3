"""IPython's display formatter, hook and publisher, with our renderers and ends."""

import builtins
import sys

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.formatters import DisplayFormatter

_KEPT_RESULTS = 3


class Publisher(DisplayPublisher):
    """Where display() and friends end. `displays` is set by the shell."""

    displays = None

    def publish(self, data, metadata=None, *, transient=None, update=False, **_old_arguments):
        display_id = (transient or {}).get("display_id")
        self.displays.show(data, metadata, False, display_id, update)

    def clear_output(self, wait=False):
        self.displays.clear()


class Formatter(DisplayFormatter):
    """IPython's formatter; types of well-known libraries go to our own renderers first."""

    # (module, class) -> (module of ours, function): object -> (data, metadata) or None
    renderers = {
        ("matplotlib.figure", "Figure"): ("figures", "render"),
        ("pandas.core.frame", "DataFrame"): ("tables", "render_frame"),
        ("pandas", "DataFrame"): ("tables", "render_frame"),
        ("plotly.basedatatypes", "BaseFigure"): ("plots", "render"),
        ("PIL.Image", "Image"): ("pictures", "render"),
    }
    _simple = frozenset((int, float, bool, complex, str, bytes))

    def format(self, obj, include=None, exclude=None):
        shell = self.parent
        shell.repr_errors = errors = []
        try:
            if type(obj) in self._simple:
                data, metadata = {"text/plain": self.formatters["text/plain"](obj)}, {}
            else:
                data, metadata = self._bundle(obj, include, exclude)
        finally:
            shell.repr_errors = None
        if errors and not any(data.values()):
            reason = f"{type(errors[0]).__name__}: {errors[0]}"
            data = {"text/plain": f"<{type(obj).__name__} object; its repr raised {reason}>"}
        return data, metadata

    def _bundle(self, obj, include, exclude):
        for ancestor in type(obj).__mro__:
            renderer = self.renderers.get((ancestor.__module__, ancestor.__name__))
            bundle = renderer and self._rendered(obj, *renderer)
            if bundle:
                return bundle
        return super().format(obj, include, exclude)

    def _rendered(self, obj, module, function):
        ours = __import__(f"pykeep_kernel.{module}", fromlist=[function])
        try:
            return getattr(ours, function)(obj)
        except Exception:
            if module == "figures":
                raise  # what is wrong with a figure (a formula, say) shows only when it is drawn
            return None


def _is_drawn(value):
    """Whether it is what plotting calls return, `Text(0.5, 1.0, 'Sales')` or a list of lines: the
    figure shows it already, and its text costs the model tokens for nothing."""
    values = value if isinstance(value, (list, tuple)) and value else [value]
    pyplot = sys.modules.get("matplotlib.pyplot")
    artist = getattr(sys.modules.get("matplotlib.artist"), "Artist", None)
    figure = getattr(sys.modules.get("matplotlib.figure"), "Figure", ())
    if not pyplot or artist is None or len(values) > 1000 or not pyplot.get_fignums():
        return False
    return all(isinstance(part, artist) and not isinstance(part, figure) for part in values)


class Hook(DisplayHook):
    """Sends the value of a cell's last expression; keeps `_`, `__`, `___` and no more alive."""

    displays = None

    def __call__(self, result=None):
        self.check_for_underscore()
        if result is None or self._ends_with_semicolon() and self.quiet():
            return
        drawn = _is_drawn(result)
        data, metadata = ({}, {}) if drawn else self.shell.display_formatter.format(result)
        self.update_user_ns(result)
        self.fill_exec_result(result)
        if data:
            self.displays.show(data, metadata, result=True)

    def _ends_with_semicolon(self):
        sources = self.shell.history_manager.input_hist_parsed
        return ";" in sources[-1].rpartition("\n")[2] if sources else False

    def update_user_ns(self, result):
        # IPython's own keeps 1,000 results alive, whole data frames among them.
        names = self.shell.user_ns
        outputs = names.get("_oh")
        if not isinstance(outputs, dict) or result is outputs:
            return
        outputs[self.prompt_count] = result
        while len(outputs) > _KEPT_RESULTS:
            del outputs[next(iter(outputs))]
        if "_" in vars(builtins):
            return  # gettext's
        for name, attribute in (("___", "__"), ("__", "_"), ("_", None)):
            value = result if attribute is None else getattr(self, attribute)
            known = getattr(self, name)
            if names.get(name, known) is known:  # else it is the user's own variable
                setattr(self, name, value)
                names[name] = value
