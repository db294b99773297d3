"""Makes an image fit what a model can take: pixels, bytes each, bytes a cell."""

import io
import struct

LONG_EDGE = 1568
MAX_BYTES = 225_000  # 300 kB as base64
CELL_BYTES = 375_000
_SMALLEST = 8_000  # below this an image is no longer worth looking at

# More distinct colours than this: a photograph or a smooth heat map, which JPEG does better.
_CHART_COLOURS = 1 << 14


class Fitted:
    """What is sent, and how it relates to what was given."""

    def __init__(self, mime, data, width, height, reduced):
        self.mime = mime
        self.data = data
        self.width = width
        self.height = height
        self.reduced = reduced


class Budget:
    """The bytes one cell may still spend on images; later ones get a share of what is left."""

    def __init__(self):
        self._left = CELL_BYTES

    def share(self):
        """How large the next image may be; 0: it cannot be shown."""
        share = min(MAX_BYTES, self._left * 3 // 5)
        return share if share >= _SMALLEST else 0

    def spend(self, size):
        self._left -= size


def fit(data, limit, compact=False):
    """A Fitted of at most `limit` bytes from PNG, JPEG, WebP or other bytes that Pillow reads.

    `compact`: smaller is better, also where the given bytes would do. Raises an exception if they
    are no image.
    """
    known = _measure(data)
    given = None
    if known:
        mime, width, height = known
        if max(width, height) <= LONG_EDGE and len(data) <= limit:
            given = Fitted(mime, data, width, height, reduced=False)
    if given and not compact:
        _check(given)
        return given
    from PIL import Image

    fitted = _shrink(Image.open(io.BytesIO(data)), limit)
    return given if given and len(data) <= len(fitted.data) else fitted


def _check(given):
    """Raises if it cannot be decoded: some clients refuse the whole conversation that such an image
    is in."""
    if not given.width or not given.height:
        raise ValueError("it has no pixels")
    try:
        from PIL import Image
    except ImportError:
        return
    Image.open(io.BytesIO(given.data)).verify()  # checksums, which load() does not look at
    Image.open(io.BytesIO(given.data)).load()


def _shrink(picture, limit):
    from PIL import Image

    original = picture.size
    picture = _opaque(picture)
    if max(picture.size) > LONG_EDGE:
        picture.thumbnail((LONG_EDGE, LONG_EDGE), Image.LANCZOS)
    data, mime, exact = _encode(picture, limit)
    while len(data) > limit:
        # Bytes go with the area, roughly.
        factor = max(0.3, min(0.85, (limit / len(data)) ** 0.5))
        size = [max(16, int(edge * factor)) for edge in picture.size]
        picture = picture.resize(size, Image.LANCZOS)
        data, mime, exact = _encode(picture, limit)
    return Fitted(mime, data, *picture.size, reduced=not exact or picture.size != original)


def to_png(picture):
    """The whole of a PIL image as PNG bytes, made fast rather than small."""
    if picture.mode not in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        picture = _opaque(picture)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def _opaque(picture):
    """A copy in RGB or grey on white; half of all viewers show transparency as black."""
    from PIL import Image

    if picture.mode in ("1", "L"):
        return picture.convert("L")
    if picture.mode in ("I", "I;16", "F"):
        low, high = picture.getextrema()
        scale = 255.0 / ((high - low) or 1)
        return picture.convert("F").point(lambda value: value * scale - low * scale).convert("L")
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        canvas = Image.new("RGB", picture.size, "white")
        canvas.paste(picture, mask=picture.getchannel("A"))
        return canvas
    return picture.convert("RGB")


def _encode(picture, limit):
    """(bytes, mime, whether every pixel is exact): the best looking form that fits, else the
    smallest one."""
    colours = picture.getcolors(_CHART_COLOURS) if picture.mode == "RGB" else None
    if picture.mode == "L" or (colours and len(colours) <= 256):
        data = _png(picture if picture.mode == "L" else _palette(picture, len(colours)))
        if len(data) <= limit:
            return data, "image/png", True
    elif colours:
        data = _png(_palette(picture, 256))
        if len(data) <= limit:
            return data, "image/png", False
    for quality in (85, 70, 50):
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=quality)
        if buffer.tell() <= limit:
            break
    return buffer.getvalue(), "image/jpeg", False


def _palette(picture, colours):
    from PIL import Image

    return picture.quantize(colours, method=Image.MEDIANCUT, dither=0)


def _png(picture):
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=picture.size[0] * picture.size[1] < 1 << 20)
    return buffer.getvalue()


def _measure(data):
    """(mime, width, height) read from the first bytes, without Pillow; None: not known."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) > 24:
        return ("image/png", *struct.unpack(">II", data[16:24]))
    if data[:3] == b"\xff\xd8\xff":
        return _measure_jpeg(data)
    if data[:4] == b"RIFF" and data[8:16] == b"WEBPVP8 " and len(data) > 30:
        width, height = struct.unpack("<HH", data[26:30])
        return "image/webp", width & 0x3FFF, height & 0x3FFF
    return None


def _measure_jpeg(data):
    position = 2
    while position + 9 < len(data) and data[position] == 0xFF:
        marker = data[position + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[position + 5 : position + 9])
            return "image/jpeg", width, height
        position += 2 + struct.unpack(">H", data[position + 2 : position + 4])[0]
    return None
