"""What a process has open goes on as it was, whatever kind it is, or is refused by its name."""

import frozen
import pytest

# name -> (made before the freeze, asked after the thaw, expected)
CARRIED = {
    "a file, at its position": (
        "f = open('/workspace/a.txt', 'w+'); f.write('hello'); f.flush(); f.seek(2)",
        "f.read(), f.tell()",
        "('llo', 5)",
    ),
    "appending to a file": (
        "f = open('/workspace/b.txt', 'a'); f.write('1'); f.flush()",
        "f.write('2'), f.flush(), open('/workspace/b.txt').read()",
        "(1, None, '12')",
    ),
    "a directory": ("d = os.open('/workspace', os.O_RDONLY)", "os.listdir(d) == os.listdir()", "True"),
    "a device": ("n = open('/dev/zero', 'rb', 0)", "n.read(2)", "b'\\x00\\x00'"),
    "unread bytes in a pipe": (
        "r, w = os.pipe(); os.write(w, b'one'); os.write(w, b'two')",
        "os.write(w, b'three'), os.read(r, 100)",
        "(5, b'onetwothree')",
    ),
    "a full pipe of another size": (
        "r, w = os.pipe(); size = fcntl.fcntl(w, 1031, 1 << 18); os.write(w, b'x' * size)",
        "len(os.read(r, 1 << 20)) == size",
        "True",
    ),
    "a pipe without a writer": (
        "r, w = os.pipe(); os.write(w, b'rest'); os.close(w)",
        "os.read(r, 9), os.read(r, 9)",
        "(b'rest', b'')",
    ),
    "a pipe without a reader": (
        "r, w = os.pipe(); os.close(r)",
        "outcome(lambda: os.write(w, b'x'))",
        "'BrokenPipeError'",
    ),
    "flags of descriptors": (
        "r, w = os.pipe(); os.set_blocking(r, False); os.set_inheritable(w, True)",
        "os.get_blocking(r), os.get_blocking(w), os.get_inheritable(r), os.get_inheritable(w)",
        "(False, True, False, True)",
    ),
    "a named pipe, opened both ways": (
        "os.mkfifo('/workspace/pipe'); f = os.open('/workspace/pipe', os.O_RDWR)",
        "os.write(f, b'x'), os.read(f, 1)",
        "(1, b'x')",
    ),
    "a duplicate shares its position": (
        "f = os.open('/workspace/c.txt', os.O_RDWR | os.O_CREAT); g = os.dup(f); os.write(f, b'abc')",
        "os.write(g, b'd'), os.lseek(f, 0, 1)",
        "(1, 4)",
    ),
    "a duplicate of stdout": ("o = os.dup(1)", "os.fstat(o).st_ino == os.fstat(1).st_ino", "True"),
    "a socket pair with data in it": (
        "a, b = socket.socketpair(); a.send(b'to b')",
        "b.send(b'to a'), b.recv(9), a.recv(9)",
        "(4, b'to b', b'to a')",
    ),
    "three socket pairs at once": (
        "p = [socket.socketpair() for _ in range(3)]; [x.send(bytes([65 + i])) for i, (x, y) in enumerate(p)]",
        "[y.recv(9) for x, y in p], [(y.send(b'z'), x.recv(1))[1] for x, y in p]",
        "([b'A', b'B', b'C'], [b'z', b'z', b'z'])",
    ),
    "datagrams have ends": (
        "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
        "a.send(b'1'), a.send(b'2'), b.recv(9), b.recv(9)",
        "(1, 1, b'1', b'2')",
    ),
    "a socket whose peer is gone": (
        "a, b = socket.socketpair(); b.send(b'last'); b.close()",
        "a.recv(9), a.recv(9)",
        "(b'last', b'')",
    ),
    "an event counter": (
        "e = libc.eventfd(7, 0o4000); os.get_blocking(e)",
        "int.from_bytes(os.read(e, 8), 'little')",
        "7",
    ),
    "a poll set": (
        "r, w = os.pipe(); p = select.epoll(); p.register(r, select.EPOLLIN)",
        "p.poll(0), os.write(w, b'x'), p.poll(1) == [(r, 1)]",
        "([], 1, True)",
    ),
    "a timer": (
        "t = libc.timerfd_create(1, 0); libc.timerfd_settime(t, 0, (ctypes.c_long * 4)(0, 0, 0, 300000000), None)",
        "len(os.read(t, 8))",
        "8",
    ),
    "a file that was deleted": (
        "t = open('/workspace/gone', 'w+'); t.write('kept'); t.flush(); os.unlink('/workspace/gone')",
        "t.seek(0), t.read(), os.fstat(t.fileno()).st_nlink",
        "(0, 'kept', 0)",
    ),
    "a temporary file": (
        "t = tempfile.NamedTemporaryFile(); t.write(b'x' * 100000); t.flush(); t.seek(99998)",
        "t.read(), os.path.getsize(t.name)",
        "(b'xx', 100000)",
    ),
    "memory without a name": (
        "m = os.memfd_create('m'); os.ftruncate(m, 1 << 20); v = mmap.mmap(m, 1 << 20); v[5:8] = b'abc'",
        "os.pread(m, 3, 5), v[5:8], os.pwrite(m, b'new', 5), v[5:8]",
        "(b'abc', b'abc', 3, b'new')",
    ),
    "a mapped file of the workspace": (
        "f = open('/workspace/map', 'w+b'); f.truncate(8192); v = mmap.mmap(f.fileno(), 8192); v[4096] = 7",
        "v[4096], v.__setitem__(0, 9), open('/workspace/map', 'rb').read(1)",
        "(7, None, b'\\t')",
    ),
    "anonymous shared memory": ("v = mmap.mmap(-1, 1 << 16); v[70:73] = b'abc'", "v[70:73]", "b'abc'"),
    "a signal descriptor": (
        "signal.pthread_sigmask(0, [10]); m = ctypes.c_ulong(1 << 9); s = libc.signalfd(-1, ctypes.byref(m), 0)",
        "os.kill(os.getpid(), 10), os.read(s, 128)[0]",
        "(None, 10)",
    ),
}

HELPERS = """
import ctypes, fcntl, mmap, os, select, signal, socket, sys, tempfile, threading, time
libc = ctypes.CDLL(None)
def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__
"""


def test_what_is_carried(place, process, cycle):
    """All kinds at once, in one process, each in a namespace of its own."""
    process.value(HELPERS + "spaces = {}\nNone")
    for name, (make, _, _) in CARRIED.items():
        process.value(f"spaces[{name!r}] = dict(globals())\nexec({make!r}, spaces[{name!r}])")
    thawed = cycle(process)
    for generation in range(2):
        numbers = thawed.value("sorted(os.listdir('/proc/self/fd'))")
        for name, (_, ask, expected) in CARRIED.items():
            if generation == 0:
                assert thawed.value(f"eval({ask!r}, spaces[{name!r}])") == expected, name
        thawed = cycle(thawed)
        assert thawed.value("sorted(os.listdir('/proc/self/fd'))") == numbers


def test_stdout_put_elsewhere(process, cycle):
    process.value("import os\nf = os.open('/workspace/out.txt', os.O_RDWR | os.O_CREAT)\nos.dup2(f, 1)")
    thawed = cycle(process)
    assert thawed.value("os.write(1, b'there'), open('/workspace/out.txt').read()") == "(5, 'there')"


LOST = {
    "outside of the process": "s = os.dup(1); os.dup2(os.open('/dev/null', 1), 1); os.dup2(1, 2)",
    "TCP socket, listening": "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()",
    "UDP socket": "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "UNIX socket, listening": "s = socket.socket(socket.AF_UNIX); s.bind('/tmp/s'); s.listen()",
    "inotify": "s = libc.inotify_init()",
    "pidfd": "s = os.pidfd_open(os.getpid())",
    "both directions": "s = socket.socketpair(); s[0].send(b'1'); s[1].send(b'2')",
    "unread messages": "s = socket.socketpair(1, 2); s[0].send(b'1')",
    "with descriptors": "s = socket.socketpair(); socket.send_fds(s[0], [b'1'], [0])",
    "a named pipe": "os.mkfifo('/tmp/f'); s = os.open('/tmp/f', os.O_RDWR)",
    "a named pipe: /workspace/f": "os.mkfifo('/workspace/f'); s = os.open('/workspace/f', 2); os.write(s, b'1')",
    "its lock": "s = open('/workspace/l', 'w'); fcntl.flock(s, fcntl.LOCK_EX)",
    "deleted directory": "os.mkdir('/workspace/d'); s = os.open('/workspace/d', 0); os.rmdir('/workspace/d')",
    "timer_create": (
        "s = ctypes.c_long(); e = (ctypes.c_int * 16)(); e[3] = 1; libc.timer_create(1, e, ctypes.byref(s))"
    ),
    "its working directory": "s = 0; os.mkdir('/workspace/cwd'); os.chdir('/workspace/cwd'); os.rmdir('/workspace/cwd')",
}


@pytest.mark.parametrize("what", LOST)
def test_what_is_refused(place, process, what):
    process.value(HELPERS + LOST[what] + "\nNone")
    with pytest.raises(frozen.Refused, match=what):
        process.freeze(place.image())
    assert process.value("1 + 1") == "2"  # it goes on


def test_what_is_lost_stays_lost(place, process, cycle):
    """With allow_lost: its number is not given to the next file, and whatever is done to it fails."""
    process.value(HELPERS + "s = socket.socket()\nkeep = open('/workspace/keep', 'w')")
    assert process.freeze(place.image(), "lost")["lost"] == ["descriptor 4: a TCP socket"]
    thawed = cycle(process, "lost")
    assert thawed.value("os.open('/workspace/keep', 0) > 5") == "True"
    assert thawed.value("outcome(lambda: os.write(s.fileno(), b'x'))") == "'OSError'"
    assert thawed.value("keep.write('x')") == "1"


def test_children_are_refused(place, process):
    process.value("import subprocess, time\nchild = subprocess.Popen(['sleep', '100'])")
    with pytest.raises(frozen.Refused, match=r"other processes run.*process \d+ \(sleep\)"):
        process.freeze(place.image())
    process.value("child.kill()\ntime.sleep(0.1)")
    with pytest.raises(frozen.Refused, match="has ended but was not waited for"):
        process.freeze(place.image())
    process.value("child.wait()")
    process.freeze(place.image())


def test_orphans_are_refused(place, process):
    process.value("import os\nos.system('sleep 100 &')")
    with pytest.raises(frozen.Refused, match="sleep"):
        process.freeze(place.image())
    assert process.freeze(place.image(), "lost")["lost"][0].startswith("process ")
