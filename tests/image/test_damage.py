"""Images and processes that want to do harm: refused, with the reason, and nothing crashes."""

import random
import struct

import frozen
import pytest

HEADER = 4096


@pytest.fixture(scope="module")
def image(place):
    image = place.image("whole")
    with frozen.boot(place) as process:
        process.value("x = 5")
        process.freeze(image)
    return image.read_bytes()


def metadata_offset(data):
    return struct.unpack_from("<Q", data, 24)[0]


def refusal(place, data, command="verify"):
    path = place.image("bad")
    path.write_bytes(data)
    try:
        frozen.tool(command, path)
    except frozen.Refused as refused:
        return str(refused)
    finally:
        path.unlink()


def test_the_whole_one_is_good(place, image):
    assert refusal(place, image) is None


def test_cut_short(place, image):
    metadata = metadata_offset(image)
    cuts = [0, 1, 8, 100, HEADER - 1, HEADER, HEADER + 1, metadata - 1, metadata, metadata + 64]
    cuts += [len(image) - 1, len(image) // 2]
    for cut in cuts:
        assert "damaged" in refusal(place, image[:cut], "inspect"), cut
    assert "damaged" in refusal(place, image + b"\0", "inspect")


def test_a_flipped_bit(place, image):
    """Anywhere: in the header, the metadata, a page, a hole."""
    generator = random.Random(3)
    metadata = metadata_offset(image)
    header = [generator.randrange(600) for _ in range(12)]
    arrays = [generator.randrange(metadata, len(image)) for _ in range(12)]
    pages = [generator.randrange(HEADER, metadata) for _ in range(24)]
    for at in header + arrays + pages:
        bad = bytearray(image)
        bad[at] ^= 1 << generator.randrange(8)
        said = refusal(place, bytes(bad))
        assert said and ("damaged" in said or "version" in said), (at, said)


def checksum(data):
    """CRC-32C, a bit at a time."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_numbers_out_of_bounds(place, image):
    """The checksums are right, the numbers are not: someone wanted it so."""
    size = header_size(image)
    for offset in range(24, size, 8):
        for value in (0, 2**31, 2**64 - 4096):
            bad = bytearray(image[:size].ljust(HEADER, b"\0"))
            struct.pack_into("<Q", bad, offset, value)
            bad[12:16] = b"\0" * 4
            bad[12:16] = struct.pack("<I", checksum(bad[:size]))
            refusal(place, bytes(bad) + image[HEADER:], "inspect")  # may be good; may not crash


def header_size(image):
    """The checksum tells where the header ends."""
    wanted = struct.unpack_from("<I", image, 12)[0]
    plain = bytearray(image[:HEADER])
    plain[12:16] = b"\0" * 4
    return next(size for size in range(200, 1024, 8) if checksum(plain[:size]) == wanted)


def test_the_loader_refuses(place, image):
    metadata = metadata_offset(image)
    for at, word in ((40, "damaged"), (metadata + 70, "damaged"), (0, "not an image"), (8, "version")):
        bad = bytearray(image)
        bad[at] ^= 0xFF
        path = place.image("bad")
        path.write_bytes(bytes(bad))
        with frozen.thaw(place, path) as process:
            with pytest.raises(frozen.Refused, match=f"(?s)loader: .*{word}.*ended with 121"):
                process.receive()


def test_a_library_that_changed(place):
    """What an image maps is part of it: another file in its place is refused by both sides."""
    library = place.workspace / "library.so"
    library.write_bytes(b"x" * 8192)
    image = place.image()
    with frozen.boot(place) as process:
        process.value(
            "import mmap\nf = open('/workspace/library.so', 'rb')\n"
            "m = mmap.mmap(f.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ)\nm[0]"
        )
        process.freeze(image)
    assert frozen.tool("why", image, "/usr")["reason"] == ""
    with frozen.thaw(place, image) as process:
        assert process.value("m[0], f.read(1)") == "(120, b'x')"
    library.write_bytes(b"y" * 8192)
    with frozen.thaw(place, image) as process:
        with pytest.raises(frozen.Refused, match="was changed since: /workspace/library.so"):
            process.value("1")
    assert "gone" in frozen.tool("why", image, "/workspace")["reason"]


OVERWRITE = """
import ctypes, struct
libc = ctypes.CDLL(None)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
table = struct.unpack('<7Q', ctypes.string_at(0x200000001000, 56))
def write(address, code):
    libc.mprotect(address & ~4095, 8192, 7)
    ctypes.memmove(address, code, len(code))
"""

HOSTILE = {
    # Its parasite runs for ever; ends by something else than a trap; has nowhere to put its result.
    "write(table[1], b'\\xeb\\xfe')": "in time",
    "write(table[1], b'\\x0f\\x0b')": "has changed the loader",
    "libc.munmap(ctypes.c_void_p(table[4] & ~4095), 8192)": "has changed the loader",
}


@pytest.mark.parametrize("change", HOSTILE)
def test_a_process_that_changed_the_loader(place, process, change):
    """It gets its registers back and goes on, unfrozen."""
    process.value(OVERWRITE + change + "\nNone")
    with pytest.raises(frozen.Refused, match=HOSTILE[change]):
        process.freeze(place.image(), "limit=1500")
    assert process.value("1 + 1") == "2"


def test_lies(place, process):
    """A parasite that answers nonsense yields an image that the server can read, at least."""
    process.value(OVERWRITE + "write(table[1], b'\\xcc')\nctypes.memset(table[4], 255, 1024)")
    image = place.image()
    process.freeze(image)
    frozen.tool("verify", image)
    with frozen.thaw(place, image) as thawed:
        with pytest.raises(frozen.Refused):
            thawed.value("1")


def test_names_with_newlines(place, process):
    """In the kernel's lists a file's name cannot be told from the next line."""
    process.value(
        "import mmap, os, threading\n"
        "name = '/workspace/a\\n7f0000000000-7f0000001000 rwxp 00000000 00:00 0 x'.replace('/0', '0')\n"
        "f = open(name, 'w+b'); f.write(b'z' * 4096); f.flush()\n"
        "m = mmap.mmap(f.fileno(), 4096)\n"
        "g = open('/workspace/gone (deleted)', 'w+b'); g.write(b'q' * 4096); g.flush()\n"
        "k = mmap.mmap(g.fileno(), 4096, mmap.MAP_PRIVATE)\n"
        "open('/proc/self/comm', 'w').write('a) R 1 (\\n')\nNone"
    )
    image = place.image()
    process.freeze(image)
    frozen.tool("verify", image)
    with frozen.thaw(place, image) as thawed:
        assert thawed.value("m[0], k[0], open('/proc/self/comm').read()") == "(122, 113, 'a) R 1 (\\n\\n')"
