"""Turns what IPython displays into `display` frames: one image to budget, bounded texts."""

import base64
import json
import os
import sys

from pykeep_kernel import images, link, streams

PLAIN_LIMIT = 64_000  # characters of text/plain
TEXT_LIMIT = 200_000  # bytes of any other type; more goes to a file
FRAME_LIMIT = 700_000  # bytes of all texts together: a frame's header is limited to 1 MiB
_WAITING_LIMIT = 16
_encode_any = json.JSONEncoder(ensure_ascii=False, default=str).encode

_IMAGE_TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif")
_EXTENSIONS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/webp": "webp",
    "image/gif": "gif",
    "image/svg+xml": "svg",
    "text/html": "html",
    "text/markdown": "md",
    "text/latex": "tex",
    "application/pdf": "pdf",
    "application/javascript": "js",
}


class Displays:
    """Sends the displays of one cell after the other."""

    def __init__(self, connection, workspace):
        self._link = connection
        self._workspace = workspace
        self._cell = None  # the number of the running cell
        self._count = 0  # its execution count
        self._files = 0
        self._budget = images.Budget()
        self._spent = {}  # display id -> bytes of its image, given back when it is updated
        self._waiting = []  # from background threads, while no cell runs
        self._ids = {}  # of this cell's displays, in order
        self._cleared = []  # those that clear_output() gave up: the next ones take their place

    def begin(self, cell, count):
        self._cell = cell
        self._count = count
        self._files = 0
        self._budget = images.Budget()
        self._spent = {}
        self._ids = {}
        self._cleared = []
        waiting, self._waiting = self._waiting, []
        for arguments in waiting:
            self.show(*arguments)

    def end(self):
        self._cell = None

    def show(self, data, metadata=None, result=False, display_id=None, update=False):
        """Sends a MIME bundle. Never raises for what is in it."""
        if self._link.dead:
            return
        if self._cell is None:
            if len(self._waiting) < _WAITING_LIMIT:
                self._waiting.append((data, metadata, result, display_id, update))
            return
        if display_id is None:
            display_id, update = self._next_id()
        self._ids[display_id] = True
        texts, binary, about = self._prepare(dict(data), metadata or {}, display_id)
        header = {
            "ev": "display",
            "id": self._cell,
            "data": texts,
            "binary": [{"mime": mime, "length": len(blob)} for mime, blob in binary],
            "metadata": about,
            "result": bool(result),
            "display_id": str(display_id)[:200],
            "update": bool(update),
        }
        # A result is nearly always the last that a cell shows: the wait is for those that print on.
        self._link.send(header, b"".join(blob for _, blob in binary), taken=not result)
        if result:
            streams.wait_before_text(self._link.wait_until_taken)

    def _next_id(self):
        """(id, whether it stands for an earlier display) for one that has no id of its own."""
        if self._cleared:
            return self._cleared.pop(0), True
        return f"{self._count}.{len(self._ids) + 1}", False

    def clear(self):
        """clear_output(): an animation's next frame replaces the last one."""
        self._cleared = list(self._ids)

    def _prepare(self, data, metadata, display_id):
        about = {}
        binary = []
        texts = {}
        chosen = next((mime for mime in _IMAGE_TYPES if data.get(mime)), None)
        if chosen:
            binary, about, note = self._image(chosen, data[chosen], metadata, display_id)
            if note:
                texts["text/plain"] = note
        room = FRAME_LIMIT
        for mime in sorted(data, key=lambda mime: mime != "text/plain"):
            value = data[mime]
            if mime in _IMAGE_TYPES or value is None:
                continue
            text, blob = _as_text(value)
            if mime == "text/plain":
                text = bounded(text, PLAIN_LIMIT)
            size = _wire_size(text)
            limit = room if mime == "text/plain" else min(room, TEXT_LIMIT)
            if blob is not None or size > limit:
                file = self.save(mime, text.encode("utf-8", "pykeep") if blob is None else blob)
                text = f"[{mime}, too large to show: {file or 'and it could not be saved'}]"
                mime = "text/plain"
                size = len(text)
            room -= size
            texts[mime] = f"{texts[mime]}\n{text}" if mime in texts else text
        return texts, binary, about

    def _image(self, mime, value, metadata, display_id):
        """(binary, metadata, text instead of the image) for one image."""
        hints = metadata.get("image") if isinstance(metadata.get("image"), dict) else {}
        about = {key: str(hints[key])[:300] for key in ("title", "axes") if hints.get(key)}
        try:
            blob = value if isinstance(value, bytes) else base64.b64decode(value)
            self._budget.spend(-self._spent.pop(display_id, 0))
            share = self._budget.share()
            if not share:
                return [], {}, self._left_out(mime, blob, about)
            fitted = images.fit(blob, share, compact=bool(hints.get("keep")))
        except Exception as error:
            return [], {}, f"[an {mime} that could not be read: {error!r}]"
        self._budget.spend(len(fitted.data))
        self._spent[display_id] = len(fitted.data)
        about.update(width=fitted.width, height=fitted.height, reduced=fitted.reduced)
        if fitted.reduced or hints.get("keep"):
            file = self.save(mime, blob)
            if file:
                about["file"] = file
        return [(fitted.mime, fitted.data)], {"image": about}, None

    def _left_out(self, mime, blob, about):
        title = f' "{about["title"]}"' if about.get("title") else ""
        file = self.save(mime, blob)
        where = f"it is in {file}" if file else "and it could not be saved to a file"
        return f"[image{title} not shown: this cell's images are at their limit in bytes; {where}]"

    def save(self, mime, blob):
        """Keeps bytes in the workspace's outputs/; the path from the workspace, or None."""
        self._files += 1
        extension = _EXTENSIONS.get(mime) or ("json" if "json" in mime else "txt")
        name = f"outputs/{self._count}-{self._files}.{extension}"
        try:
            os.makedirs(os.path.join(self._workspace, "outputs"), exist_ok=True)
            with open(os.path.join(self._workspace, name), "wb") as file:
                file.write(blob)
        except OSError:
            return None
        return name


def _as_text(value):
    """(text, None), or (description, bytes) for what is no text."""
    if isinstance(value, str):
        return value, None
    if isinstance(value, (bytes, bytearray)):
        return "", bytes(value)
    try:
        return _encode_any(value), None
    except (TypeError, ValueError):
        return str(value), None


def _wire_size(text):
    """Bytes in a frame's header; an estimate from above for what is too long anyway."""
    if len(text) > TEXT_LIMIT:
        return len(text)
    return len(link.encode(text).encode("utf-8", "pykeep"))


def bounded(text, limit):
    if len(text) <= limit:
        return text
    head, tail = limit * 3 // 4, limit // 4
    gap = f"[... {len(text) - head - tail:,} characters left out ...]"
    return f"{text[:head]}\n{gap}\n{text[-tail:]}"


def end_of_cell():
    """Shows the matplotlib figures that were not shown yet, and lets go of plotly's renderer."""
    if "matplotlib.pyplot" in sys.modules:
        from pykeep_kernel import figures

        figures.flush()
    plots = sys.modules.get("pykeep_kernel.plots")
    if plots is not None:
        plots.stop_renderer()
