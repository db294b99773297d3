"""plotly: a PNG by kaleido if it can, and always the figure's JSON."""

import signal
import sys
import threading
import warnings

_RENDER_SECONDS = 30

_TRIES = 2  # failures in a row, after which it is not tried again
_failures = 0
_failed = ""  # why there was no image


def on_plotly_io(io):
    """fig.show() and plotly.io.show() must not open a browser or ask for nbformat."""

    def show(figure, *_arguments, **_options):
        from IPython.display import display

        if isinstance(figure, dict):
            import plotly.graph_objects

            figure = plotly.graph_objects.Figure(figure)
        display(figure)

    io.show = show


def render(figure):
    title = _title(figure)
    data = {"application/vnd.plotly.v1+json": figure.to_json()}
    kinds = ", ".join(sorted({trace.type or "trace" for trace in figure.data})) or "no traces"
    text = f"<plotly figure: {kinds}>"
    image = _image(figure)
    if image is None:
        data["text/plain"] = (
            f"{text}\n[no image of this plotly figure: {_failed}. Its JSON is kept; "
            "draw it with matplotlib to see it.]"
        )
        return data, {}
    data["image/png"] = image
    data["text/plain"] = text
    return data, {"image": {"title": title, "axes": _axes(figure), "keep": True}}


def _image(figure):
    global _failed, _failures
    if _failures >= _TRIES:
        return None
    try:
        with warnings.catch_warnings(), _limit(_RENDER_SECONDS):
            warnings.simplefilter("ignore")
            image = figure.to_image(format="png")
    except Exception as error:
        first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
        _failed = first_line[:200].rstrip(" .,:")
        _failures += 1
        stop_renderer()
        return None
    _failures = 0
    return image


def stop_renderer():
    """At the end of a cell: the browser is some 300 MB, and its processes forbid a snapshot."""
    scope = getattr(sys.modules.get("plotly.io._kaleido"), "scope", None)
    try:
        if scope is not None:
            scope._shutdown_kaleido()
    except Exception:
        pass  # it was killed already, or this kaleido has no such process


class _limit:
    """kaleido waits for its browser without end; a timer nobody else uses ends that."""

    def __init__(self, seconds):
        self._seconds = seconds
        self._armed = False

    def __enter__(self):
        main = threading.current_thread() is threading.main_thread()
        if main and not signal.getitimer(signal.ITIMER_REAL)[0]:
            self._previous = signal.signal(signal.SIGALRM, self._expired)
            signal.alarm(self._seconds)
            self._armed = True

    def __exit__(self, *_error):
        if self._armed:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, self._previous)

    def _expired(self, _signum, _frame):
        raise TimeoutError(f"kaleido gave no image within {self._seconds} s")


def _title(figure):
    try:
        return figure.layout.title.text or ""
    except Exception:
        return ""


def _axes(figure):
    parts = []
    for name in ("xaxis", "yaxis"):
        try:
            label = figure.layout[name].title.text
        except Exception:
            label = None
        if label:
            parts.append(f"{name[0]}: {label}")
    return ", ".join(parts)
