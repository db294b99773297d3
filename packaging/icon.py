"""Draws pykeep's icon: a keep whose gate is a prompt. Plain polygons, a PNG without any library."""

import math
import struct
import zlib

DARK, STONE, SHADE, GOLD = (0x1B, 0x2A, 0x41), (0xE8, 0xE4, 0xD8), (0xC9, 0xC2, 0xB0), (0xF2, 0xB1, 0x34)
LINES = 4  # a pixel has so many, for smooth edges

# On a field of 64 by 64, with round corners.
FIELD = [
    (x + 12 * math.cos(turn * math.pi / 16), y + 12 * math.sin(turn * math.pi / 16))
    for corner, (x, y) in enumerate([(52, 52), (12, 52), (12, 12), (52, 12)])
    for turn in range(8 * corner, 8 * corner + 9)
]
# A shape is a colour and a polygon; later ones cover earlier ones.
TOWER = [(14, 56), (16, 26), (12, 26), (12, 10), (20, 10), (20, 16), (28, 16), (28, 10), (36, 10)]
TOWER += [(36, 16), (44, 16), (44, 10), (52, 10), (52, 26), (48, 26), (50, 56)]
SHAPES = [
    (DARK, FIELD),
    (STONE, TOWER),
    (SHADE, [(15.7, 30), (16, 26), (48, 26), (48.3, 30)]),
    (DARK, [(20, 56), (20, 40), (24, 34), (40, 34), (44, 40), (44, 56)]),
    (GOLD, [(24, 40), (26, 38), (33, 45), (26, 52), (24, 50), (29, 45)]),  # >
    (GOLD, [(34, 49), (42, 49), (42, 52), (34, 52)]),  # _
]


def _crossings(polygon, y):
    """Where a line at this height enters and leaves the polygon."""
    found = []
    for (x1, y1), (x2, y2) in zip(polygon, polygon[1:] + polygon[:1]):
        if (y1 <= y) != (y2 <= y):
            found.append(x1 + (y - y1) * (x2 - x1) / (y2 - y1))
    found.sort()
    return zip(found[::2], found[1::2])


def _add_span(coverage, left, right):
    """Adds one line's share of each pixel between two places, exact at both ends."""
    for x in range(int(left), min(int(right) + 1, len(coverage))):
        coverage[x] += (min(right, x + 1) - max(left, x)) / LINES


def _row(y, size):
    row = [(0.0, 0.0, 0.0, 0.0)] * size  # colour times opacity, opacity
    for colour, polygon in SHAPES:
        coverage = [0.0] * size
        for line in range(LINES):
            height = (y + (line + 0.5) / LINES) * 64 / size
            for left, right in _crossings(polygon, height):
                _add_span(coverage, left * size / 64, right * size / 64)
        for x, share in enumerate(coverage):
            if share:
                below = row[x]
                row[x] = tuple(c * share + b * (1 - share) for c, b in zip((*colour, 255), below))
    return bytes(_byte(pixel, channel) for pixel in row for channel in range(4))


def _byte(pixel, channel):
    opacity = pixel[3] / 255
    return round(pixel[3] if channel == 3 else pixel[channel] / opacity if opacity else 0)


def write_icon(path, size: int):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + _row(y, size) for y in range(size))
    header = struct.pack(">IIBBBBB", size, size, 8, 6, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9))
    path.write_bytes(png + chunk(b"IEND", b""))
