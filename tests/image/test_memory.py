"""Memory comes back as it was, and behaves like memory of its own afterwards."""

import contextlib
import time

import frozen
import pytest


def test_kinds_of_memory(process, cycle):
    process.value(
        "import mmap, ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "M = {k: mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for k in 'abcdef'}\n"
        "for k in M: M[k][5000] = ord(k)\n"
        "M['b'].madvise(10); M['c'].madvise(18); M['d'].madvise(14)\n"  # dontfork, wipeonfork, huge
        "address = lambda m: ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
        "locked = libc.mlock(ctypes.c_void_p(address(M['e'])), 1 << 16)\n"
        "protected = libc.mprotect(ctypes.c_void_p(address(M['f'])), 1 << 20, 0)\n"
        "sparse = mmap.mmap(-1, 40 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)\n"
        "sparse[30 << 30] = 9\nNone"
    )
    process = cycle(process)
    # Memory that a fork wipes is wiped by a thaw, too: it is meant for random generators' state.
    assert process.value("[M[k][5000] for k in 'abcde'], sparse[30 << 30]") == "([97, 98, 0, 100, 101], 9)"
    flags = "[l.split()[1:] for l in open('/proc/self/smaps') if l.startswith('VmFlags')]"
    assert process.value(f"[any(f in l for l in {flags}) for f in ('dc', 'wf', 'lo')]") == str([True] * 3)
    assert (
        process.value("libc.mprotect(ctypes.c_void_p(address(M['f'])), 1 << 20, 1), M['f'][5000]")
        == "(0, 102)"
    )


def test_zeros_stay_zeros(process, cycle):
    """The calls that would show image-backed memory to be a file's are refused (loader/filter.cpp)."""
    process.value(
        "import mmap\nm = mmap.mmap(-1, 1 << 22, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
        "m[:] = b'x' * len(m)\nNone"
    )
    process = cycle(process)
    ask = (
        "def outcome(f):\n"
        "    try: return f()\n"
        "    except (OSError, ValueError) as e: return getattr(e, 'errno', 0)\n"
        "outcome(lambda: m.madvise(mmap.MADV_DONTNEED)), m[0], outcome(lambda: m.resize(1 << 23))"
    )
    assert process.value(ask) in ("(22, 120, 22)", "(22, 120, 0)")
    fresh = "n = mmap.mmap(-1, 1 << 16); n[0] = 1; n.madvise(mmap.MADV_DONTNEED); n.close()"
    assert process.value(fresh + "\n1") == "1"


@pytest.mark.parametrize("way", ["fork", "nofork"])
def test_a_large_array(place, process, way):
    """The pause does not grow with the memory when it is taken from a fork."""
    process.value("b = bytearray(256 << 20)\nfor i in range(0, len(b), 4096): b[i] = i // 4096 % 251\nNone")
    image = place.image()
    frozen_now = process.freeze(image, *([way] if way == "nofork" else []))
    assert frozen_now["by_fork"] == (way == "fork")
    if way == "fork":
        pauses = [frozen_now["pause_us"]]  # usually 10 to 20 ms; a machine that stalls adds to some
        while min(pauses) >= 200_000 and len(pauses) < 5:
            pauses.append(process.freeze(place.image())["pause_us"])
        assert min(pauses) < 200_000, pauses
    process.value("b[0] = 77")  # goes on, and the image does not see it
    with frozen.thaw(place, image) as thawed:
        check = "all(b[i] == i // 4096 % 251 for i in range(0, len(b), 4096 * 7)), b[0]"
        assert thawed.value(check) == "(True, 0)"
    image.unlink()


def test_an_image_of_changes(place):
    """A session's image holds what differs from the template's; the next one likewise."""
    template, first, second = (place.image() for _ in range(3))
    with frozen.boot(place, "json", "decimal") as process:
        process.value("big = bytes(range(256)) * 100_000\nNone")
        whole = process.freeze(template)["bytes"]
    with frozen.thaw(place, template) as session:
        session.value("mine = 'first'")
        delta = session.freeze(first, f"base={template}", "end")["bytes"]
        assert delta < whole / 4
    with frozen.thaw(place, first, template) as session:
        assert session.value("mine, big[-1]") == "('first', 255)"
        session.value("mine = 'second'")
        assert session.freeze(second, f"base={template}", "end")["bytes"] < whole / 4
    first.unlink()  # an image depends on the template's alone
    with frozen.thaw(place, second, template) as session:
        assert session.value("mine, big[-1]") == "('second', 255)"
    assert frozen.tool("inspect", second)["has_base"]
    with frozen.thaw(place, second) as session, pytest.raises(frozen.Refused, match="template's image"):
        session.value("1")
    other = place.image()
    with frozen.boot(place) as process:
        process.freeze(other)
    with frozen.thaw(place, second, other) as session, pytest.raises(frozen.Refused, match="not the one"):
        session.value("1")
    with pytest.raises(frozen.Refused, match="can only refer to a template's image"):
        with frozen.thaw(place, template) as session:
            session.freeze(place.image(), f"base={second}")


def test_the_hot_set(place):
    template = place.image()
    with frozen.boot(place) as process:
        process.freeze(template)
    with frozen.thaw(place, template) as session:
        session.value("[str(n) for n in range(1000)]")
        frozen.tool("train", session.pid, template)
    frozen.tool("verify", template)
    with frozen.thaw(place, template) as session:
        assert session.value("1 + 1") == "2"


def test_copies_diverge(place, process):
    process.value("x = []")
    image = place.image()
    process.freeze(image)
    sessions = [frozen.thaw(place, image) for _ in range(8)]
    for number, session in enumerate(sessions):
        session.send(code=f"import os\nx.append({number})\nx, os.urandom(8)")
    answers = [session.receive()["value"] for session in sessions]
    assert len(set(answers)) == len(sessions)
    for session in sessions:
        session.kill()


def test_limits_of_a_freeze(place, process):
    process.value("b = bytearray(b'x' * (32 << 20))\nNone")
    with pytest.raises(frozen.Refused, match="more than 10 MiB"):
        process.freeze(place.image(), "max=10485760")
    started = time.monotonic()
    for limit in range(1, 20):  # wherever it happens to be cut off, the process is as it was
        with contextlib.suppress(frozen.Refused):
            process.freeze(place.image(), f"limit={limit}")
        assert process.value("1 + 1") == "2"
    assert time.monotonic() - started < 90
    taken = place.image()
    taken.write_text("x")
    with pytest.raises(frozen.Refused, match="exists already"):
        process.freeze(taken)
    assert taken.read_text() == "x" and not list(place.path.glob("*.partial"))
    assert process.value("len(b)") == str(32 << 20)
