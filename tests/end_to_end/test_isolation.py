"""What a cell cannot do and cannot see; each claim is tried from inside a cell. (peers 5)"""

import contextlib
import os
import socket
import time

import pytest
from conftest import Runner, environment_in, program
from mcp_client import Client

CANARY = "canary-7f3e9a51c2d84b60"


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory):
    """A server with a secret in its environment."""
    directory = tmp_path_factory.mktemp("isolation")
    environment = {**environment_in(directory), "SECRET_TOKEN": CANARY}
    with Client([program("PYKEEP_BINARY")], env=environment, cwd=directory) as client:
        client.connect()
        run = Runner(client)
        run.directory = directory
        run("pass")
        yield run
        client.close()


def value(run, code):
    result = run(code)
    assert not result.is_error, result.text
    return eval(result.text, {})  # noqa: S307: what this test's own cell said


# ---- environment, memory, identity ----

ALLOWED = {"PATH", "HOME", "LANG", "LC_ALL", "TZ", "OMP_NUM_THREADS", "PWD", "PYTHONPATH"} | {
    "GIT_PAGER", "NO_COLOR", "PAGER", "TERM", "ARROW_DEFAULT_MEMORY_POOL",
}  # fmt: skip


def test_the_environment_is_an_allow_list(run):
    names = value(run, "import os; sorted(os.environ)")
    assert {n for n in names if not n.startswith(("OPENBLAS_", "PIP_"))} <= ALLOWED


def search_everywhere(name, value):
    """Code of a cell that looks for `name=value` in all environments and memories it can read. It
    knows both backwards only, or it would find its own needle."""
    return f"""
import glob
found = []
def search(data, where):
    at = -1
    while (at := data.find({value[::-1]!r}[::-1].encode(), at + 1)) >= 0:
        if data[max(at - {len(name) + 1}, 0) : at][::-1] == {"=" + name[::-1]!r}.encode(): found.append(where)
for process in glob.glob('/proc/[0-9]*'):
    try: search(open(f'{{process}}/environ', 'rb').read(), 'environ')
    except OSError: pass
    try:
        memory = open(f'{{process}}/mem', 'rb', 0)
        areas = [line.split() for line in open(f'{{process}}/maps')]
    except OSError: continue
    for area in areas:
        start, end = (int(edge, 16) for edge in area[0].split('-'))
        try:
            memory.seek(start)
            search(memory.read(min(end - start, 1 << 26)), area[-1])
        except (OSError, ValueError, OverflowError): pass
found"""


def test_a_secret_of_the_server_is_nowhere(run):
    assert value(run, search_everywhere("SECRET_TOKEN", CANARY)) == []
    assert value(run, search_everywhere("LC_ALL", "C.UTF-8")) != []  # the search does find things


def test_no_capabilities_and_no_new_ones(run):
    status = run("print(open('/proc/self/status').read())").text
    lines = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(lines[name], 16) == 0, name
    assert lines["NoNewPrivs"] == "1" and lines["Seccomp"] == "2"
    assert lines["Uid"].split() == ["1000"] * 4
    # An ordinary user cannot leave groups: inside they are the own one and "nobody's", 65534.
    assert set(lines["Groups"].split()) <= ({"1000", "65534"} if os.geteuid() else set())


def test_on_the_host_it_is_nobody_either(run):
    """The processes in namespaces of their own, as the host sees them."""
    uids = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
                status = dict(line.split(":\t", 1) for line in file if ":\t" in line)
        except OSError:
            continue
        if len(status["NSpid"].split()) > 1 and is_below(int(pid), run.client.process.pid):
            uids.append(status["Uid"].split()[0])
    assert len(uids) >= 2 and "0" not in uids


def is_below(pid, ancestor):
    while pid > 1 and pid != ancestor:
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
                pid = int(stat.read().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return pid == ancestor


# ---- network ----


def test_no_address_answers(run):
    """A server that listens on the host: neither it nor any other address can be reached."""
    with socket.create_server(("0.0.0.0", 0)) as listening:
        port = listening.getsockname()[1]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))
                lan = probe.getsockname()[0]
            except OSError:
                lan = "10.0.0.1"
        hosts = ["127.0.0.1", "::1", "0.0.0.0", lan, "169.254.169.254", "10.0.0.1", "192.0.2.1"]
        code = f"""
import socket, time
answers = {{}}
for host in {hosts!r}:
    started = time.monotonic()
    try: answers[host] = 'connected', socket.create_connection((host, {port}), timeout=3)
    except OSError as error: answers[host] = type(error).__name__, time.monotonic() - started < 2
answers"""
        answers = value(run, code)
    assert {fast for _, fast in answers.values()} == {True}, answers
    assert {kind for kind, _ in answers.values()} <= {"ConnectionRefusedError", "OSError"}, answers


def test_names_fail_fast(run):
    code = """
import socket, time
started = time.monotonic()
try: answer = socket.gethostbyname('x.example')
except OSError as error: answer = type(error).__name__
answer, time.monotonic() - started < 2"""
    assert value(run, code) == ("gaierror", True)


@pytest.mark.parametrize(
    "kind", ["AF_PACKET, socket.SOCK_RAW", "AF_INET, socket.SOCK_RAW", "AF_NETLINK, 3", "AF_VSOCK, 1"]
)
def test_odd_sockets(run, kind):
    code = f"import socket\ntry: socket.socket(socket.{kind}).fileno() and 'opened'\nexcept OSError as e: print(e.errno)"
    assert run(code).text.strip() in {"1", "13", "93", "97"}  # EPERM, EACCES, E*NOSUPPORT


def test_abstract_sockets_of_the_host_are_not_there(run):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0pykeep-test-{os.getpid()}")
        listening.listen()
        code = f"import socket; socket.socket(socket.AF_UNIX).connect('\\0pykeep-test-{os.getpid()}')"
        assert "ConnectionRefusedError" in run(code).text


# ---- mounts and files ----


@pytest.mark.parametrize(
    "call",
    [
        "mount(b'none', b'/', None, 0x20 | 0x1000, None)",
        "mount(b'none', b'/usr/lib', None, 0x20 | 0x1000, None)",
        "mount(b'tmpfs', b'/tmp', b'tmpfs', 0, None)",
        "umount2(b'/usr/lib', 2)",
        "unshare(0x10000000)",
        "unshare(0x00020000)",
        "setns(0, 0)",
        "pivot_root(b'/', b'/tmp')",
        "chroot(b'/tmp')",
        "syscall(442, -100, b'/', 0, 0, 0)",
        "syscall(428, -100, b'/', 1)",
        "syscall(56, 0x10000000 | 17, 0, 0, 0, 0)",
        "syscall(101, 16, 1, 0, 0)",
        "syscall(321, 0, 0, 0)",
        "syscall(425, 1, 0)",
    ],
    ids=[
        "remount /", "remount /usr/lib", "mount", "umount", "user namespace", "mount namespace", "setns",
        "pivot_root", "chroot", "mount_setattr", "open_tree", "clone with a namespace", "ptrace", "bpf", "io_uring",
    ],
)  # fmt: skip
def test_calls_that_would_change_the_sandbox_are_refused(run, call):
    code = f"import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nlibc.{call}, ctypes.get_errno()"
    assert value(run, code) in {(-1, 1), (-1, 38)}  # EPERM; ENOSYS


def test_mount_and_unshare_as_programs(run):
    text = run("!mount -o remount,rw / ; unshare -Ur mount -o remount,rw /").text
    assert "must be superuser" in text and "Operation not permitted" in text


def test_of_home_only_the_way_to_the_template_is_there(run):
    """It is mounted at its own path, and this may lie below /home."""
    seen = "[os.path.join(top, name) for top, below, files in os.walk('/home') for name in below + files]"
    environment = value(run, "import sys; sys.prefix")
    beside = f"import os; [p for p in {seen} if not (p + '/').startswith({environment + '/'!r})]"
    assert all(environment.startswith(path + "/") for path in value(run, beside))


@pytest.mark.parametrize(
    "path",
    [
        "/etc/shadow",
        "/etc/passwd-",
        "/root",
        "/run",
        "/var/run",
        "/sys",
        "/boot",
        "/proc/kcore",
        "/dev/vda",
        "/dev/mem",
        "/dev/kvm",
    ],
)
def test_not_there(run, path):
    """/etc/shadow is what a server that root started could have read."""
    assert value(run, f"import os\ntry: open({path!r}, 'rb').read(1); r = 'read'\nexcept OSError as e: r = e.strerror\nr") in {
        "No such file or directory", "Permission denied", "Operation not permitted",
    }  # fmt: skip
    assert path in ("/proc/kcore", "/dev/kvm") or not value(run, f"os.path.exists({path!r})")


def test_no_sockets_to_the_host(run):
    code = """
import os, stat
found = []
for top, names, files in os.walk('/'):
    names[:] = [name for name in names if top + name not in ('/proc', '/usr')]
    for name in files:
        try: mode = os.lstat(os.path.join(top, name)).st_mode
        except OSError: continue
        if stat.S_ISSOCK(mode) or stat.S_ISBLK(mode): found.append(os.path.join(top, name))
found"""
    assert value(run, code) == []


def test_nothing_is_writable_but_its_own(run):
    code = """
import os
writable = []
for top, names, _ in os.walk('/'):
    names[:] = [name for name in names if os.path.join(top, name) not in ('/proc', '/workspace', '/tmp')]
    if os.access(top, os.W_OK): writable.append(top)
writable"""
    assert set(value(run, code)) <= {"/dev/pts", "/dev/shm"}


STARTED_BY_THE_HOST = (
    ".bashrc", ".profile", ".config/autostart/x.desktop", "sitecustomize.py", "usercustomize.py",
    "evil.pth", ".git/hooks/pre-commit", ".vscode/tasks.json", ".mcp.json", "pip.conf",
)  # fmt: skip


def test_start_up_files_stay_inside(run):
    """Whatever is written in every writable place, the host sees it below the session's workspace
    only, which nothing there runs code from."""
    before = time.time() - 1
    code = f"""
import os, site, sys
places = {{os.path.expanduser('~'), '/tmp', '/workspace', '/dev/shm', sys.prefix, '/etc', '/usr/lib', site.getusersitepackages()}}
written = 0
for place in places:
    for name in {STARTED_BY_THE_HOST!r}:
        try:
            os.makedirs(os.path.dirname(os.path.join(place, name)), exist_ok=True)
            open(os.path.join(place, name), 'w').write('evil'); written += 1
        except OSError: pass
written"""
    assert value(run, code) >= 30
    suspects = [
        os.path.expanduser("~"),
        "/tmp",
        "/dev/shm",
        "/etc",
        os.environ.get("PYKEEP_TEMPLATE", "/etc"),
    ]
    for place in suspects:
        for name in STARTED_BY_THE_HOST:
            path = os.path.join(place, name)
            assert not os.path.lexists(path) or os.stat(path).st_mtime < before, path
    outside = [
        path
        for path in run.directory.rglob("*")
        if path.name in {os.path.basename(name) for name in STARTED_BY_THE_HOST}
    ]
    assert outside and all("/sessions/" in str(path) for path in outside)


def test_nor_do_they_start_anything_in_the_next_kernel(run):
    """A workspace is the session's own; still its kernel starts without what cells left there."""
    run("open('/workspace/sitecustomize.py', 'w').write('import builtins; builtins.evil = 1')")
    run("open('/workspace/json.py', 'w').write('raise RuntimeError')")
    run.tool("interrupt_execution", restart=True)
    assert run("import builtins; hasattr(builtins, 'evil')").text.endswith("False")
    run("import os; os.remove('/workspace/json.py'); os.remove('/workspace/sitecustomize.py')")


# ---- transfers ----


@pytest.mark.parametrize("target", ["/etc/passwd", "/proc/self/environ", "../../../../etc/passwd"])
def test_a_link_in_the_workspace_is_not_followed_out(run, target):
    run(f"import os\ntry: os.remove('link')\nexcept OSError: pass\nos.symlink({target!r}, 'link')")
    for tool, arguments in [
        ("download_file", {"path": "link"}),
        ("upload_file", {"name": "link", "text": "x"}),
    ]:
        result = run.tool(tool, **arguments)
        assert "root:" not in result.text and CANARY not in result.text
        assert result.is_error or os.path.getsize("/etc/passwd") > 1
    run("import os\ntry: os.remove('dir')\nexcept OSError: pass\nos.symlink('/etc', 'dir')")
    assert run.tool("download_file", path="dir/passwd").is_error
    assert run.tool("upload_file", name="dir/pykeep-test", text="x").is_error
    assert not os.path.exists("/etc/pykeep-test")


def test_a_directory_that_turns_into_a_link_meanwhile(run):
    """A thread of the session swaps them as fast as it can while the server reads and writes."""
    run(
        "import os, threading\nos.makedirs('swapped'); open('swapped/passwd', 'w').write('own')\n"
        "os.symlink('/etc', 'other'); done = False\n"
        "def swap():\n    while not done:\n"
        "        for a, b in [('swapped', 'aside'), ('other', 'swapped'), ('swapped', 'other'), ('aside', 'swapped')]:\n"
        "            os.rename(a, b)\n"
        "swapper = threading.Thread(target=swap); swapper.start()"
    )
    seen = [run.tool("download_file", path="swapped/passwd") for _ in range(300)]
    for _ in range(100):
        run.tool("upload_file", name="swapped/pykeep-race", text="x")
    run("done = True; swapper.join()")
    assert any(result.is_error for result in seen) and any(not result.is_error for result in seen)
    assert all("root:" not in result.text for result in seen)
    assert not os.path.exists("/etc/pykeep-race")


def test_an_upload_does_not_follow_links_out_of_its_root(run):
    (run.directory / "outside").symlink_to("/etc/passwd")
    result = run.tool("upload_file", name="got", path="outside")
    assert result.is_error and "Traceback" not in result.text
    assert run.tool("upload_file", name="got", path="/etc/passwd").is_error
    assert run("import os; os.path.exists('got')").text == "False"


@pytest.mark.parametrize("name", ["../../etc/x", "/etc/x", "a/../../x", "", ".", "..", "x" * 256, "a\0b"])
def test_names_that_lead_elsewhere(run, name):
    result = run.tool("upload_file", name=name, text="x")
    assert result.is_error and result.text
    assert run("1 + 1").text == "2"


@pytest.mark.parametrize(
    "name",
    ["--help", "-rf", "two words", "new\nline", "$(id)", "`id`", "a;b", "ü 名.csv", "x" * 255, "a/b/c"],
)
def test_names_are_data(run, name):
    assert not run.tool("upload_file", name=name, text="content").is_error
    assert value(run, f"open({name!r}).read()") == "content"
    assert "content" in run.tool("download_file", path=name).text


# ---- sessions, language ----


def test_sessions_do_not_see_each_other(run, fresh):
    run(
        "import sys, types; secret = 1; sys.modules['mine'] = types.ModuleType('mine'); open('mine.txt', 'w').write('x')"
    )
    run("open('/tmp/mine.txt', 'w').write('x'); import os; os.environ['MINE'] = '1'; pid = os.getpid()")
    code = """
import os, sys
'secret' in globals(), 'mine' in sys.modules, os.path.exists('mine.txt'), os.path.exists('/tmp/mine.txt'), 'MINE' in os.environ"""
    assert value(fresh, code) == (False,) * 5
    pids = value(fresh, "sorted(int(p) for p in os.listdir('/proc') if p.isdigit())")
    assert len(pids) <= 4  # its own init and kernel
    assert value(fresh, "sorted(os.listdir('/workspace'))") == []


@pytest.mark.parametrize(
    "trick",
    [
        "[c for c in ().__class__.__mro__[1].__subclasses__() if c.__name__ == 'Popen'][0]('id -u; cat /etc/shadow', shell=True, stdout=-1, stderr=-1).communicate()",
        "def f(x=__import__('os').popen('id -u; cat /etc/shadow 2>&1').read()): return x\nf()",
        "import ctypes; ctypes.CDLL(None).setuid(0), __import__('os').popen('id -u; cat /etc/shadow 2>&1').read()",
        "get_ipython().getoutput('id -u; cat /etc/shadow 2>&1')",
    ],
)
def test_language_tricks_reach_what_a_cell_reaches_and_no_more(run, trick):
    text = run("import subprocess\n" + trick).text
    assert "1000" in text and "No such file or directory" in text and "root:" not in text


def test_nothing_listens(run):
    """Neither in the sandbox nor in the server."""
    assert value(run, "[line for line in open('/proc/net/tcp')][1:]") == []
    own = set()
    for fd in os.listdir(f"/proc/{run.client.process.pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            own.add(os.readlink(f"/proc/{run.client.process.pid}/fd/{fd}"))
    for table in ("tcp", "tcp6", "udp", "udp6"):
        with open(f"/proc/net/{table}", encoding="ascii") as lines:
            assert not {f"socket:[{line.split()[9]}]" for line in list(lines)[1:]} & own
