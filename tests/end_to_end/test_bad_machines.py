"""Machines on which something is missing, full or broken: a message says what, why and how to go on,
and what was there before is still there.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest
from conftest import best_of_three, program, until
from mcp_client import Client

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts and other users need root")
ORDINARY_USER = 12345


def call(client, tool="run_python", /, **arguments):
    if tool == "run_python":
        arguments.setdefault("code", "1 + 1")
    return client.call_tool(tool, arguments)


def doctor(environment, *prefix):
    return subprocess.run(
        [*prefix, program("PYKEEP_BINARY"), "doctor"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def refused(result, *words):
    assert result.is_error
    for word in words:
        assert word in result.text, result.text


# ---- templates


def environment_with(directory, interpreter=None):
    """What looks like a virtual environment, with this text as its interpreter."""
    (directory / "bin").mkdir(parents=True)
    (directory / "lib" / "python3.11").mkdir(parents=True)
    (directory / "pyvenv.cfg").write_text("home = /usr/bin\n")
    if interpreter:
        (directory / "bin" / "python3").write_text(interpreter)
        (directory / "bin" / "python3").chmod(0o755)
    return directory


@pytest.fixture
def templates(tmp_path):
    """Below a directory that the sandbox's user can enter, as templates are."""
    directory = tmp_path / "templates"
    environment_with(directory / "empty")
    (environment_with(directory / "dangling") / "bin" / "python3").symlink_to("/nonexistent/python3")
    (environment_with(directory / "directory") / "bin" / "python3").mkdir()
    environment_with(directory / "old", "#!/bin/sh\necho 'SyntaxError: invalid syntax' >&2\nexit 1\n")
    environment_with(directory / "hangs", "#!/bin/sh\nsleep 1000\n")
    environment_with(directory / "garbage", "#!/bin/sh\nhead -c 100000 /dev/urandom >&3\nsleep 9\n")
    environment_with(directory / "early", "#!/bin/sh\nprintf '\\002\\0\\0\\0\\0\\0\\0\\0{}' >&3\nsleep 9\n")
    environment_with(directory / "floods", "#!/bin/sh\nexec yes\n")
    for parent in [tmp_path, *list(tmp_path.parents)[:2]]:
        parent.chmod(0o755)
    return directory


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("absent", ["no Python environment at", "pykeep template build"]),
        ("empty", ["is broken", "pykeep template build"]),
        ("dangling", ["is broken", "pykeep template build"]),
        ("directory", ["is broken", "pykeep template build"]),
        ("old", ["did not start", "SyntaxError: invalid syntax", "pykeep doctor"]),
        ("hangs", ["not ready after 2 s", "pykeep doctor"]),
        ("garbage", ["frame header", "pykeep doctor"]),
        ("early", ["did not start", "pykeep doctor"]),
        ("floods", ["not ready after 2 s", "pykeep doctor"]),
    ],
)
def test_a_broken_template_is_named_with_its_remedy(start, templates, name, words):
    limit = "2" if "not ready after 2 s" in words else "30"
    client = start("--template", str(templates / name), "--start-limit", limit)
    refused(call(client), str(templates / name), *words)
    assert client.request("ping") == {}


# ---- what is missing


@needs_root
def test_without_bubblewrap_nothing_runs(environment):
    hide = ["unshare", "-m", "sh", "-c", 'mount --bind /dev/null /usr/bin/bwrap; exec "$0" "$@"']
    with Client([*hide, program("PYKEEP_BINARY")], env=environment) as client:
        client.connect()
        refused(call(client), "bubblewrap is not installed", "apt-get install bubblewrap")
    report = doctor(environment, *hide)
    assert report.returncode == 1
    assert "apt-get install bubblewrap" in report.stdout
    assert "Not safe" in report.stdout


def test_too_few_open_files_are_said(environment):
    with Client(["prlimit", "--nofile=64", program("PYKEEP_BINARY")], env=environment) as client:
        client.connect()
        refused(call(client), "limit of open files", "ulimit -n")


# ---- the state directory


@needs_root
def test_a_state_directory_of_somebody_else_or_none_at_all(start, environment, tmp_path):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    os.chown(foreign, ORDINARY_USER, ORDINARY_USER)
    file = tmp_path / "file"
    file.write_text("mine")
    for path, why in [
        (foreign, "belongs to another user"),
        (file, "Not a directory"),
        (file / "below", "Not a directory"),
    ]:
        client = start(env={**environment, "PYKEEP_STATE_DIR": str(path)})
        refused(call(client), str(path), why, "--state-dir", "No session was made")
    assert file.read_text() == "mine"
    report = doctor({**environment, "PYKEEP_STATE_DIR": str(file)})
    assert report.returncode == 1
    assert "--state-dir" in report.stdout


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 3 MiB, and a function that fills it up."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], check=True)

    def fill():
        with open(disk / "filler", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    yield disk, fill
    subprocess.run(["umount", "-l", disk], check=True)


@needs_root
def test_a_full_disk_loses_nothing(start, environment, small_disk):
    disk, fill = small_disk
    environment = {**environment, "PYKEEP_STATE_DIR": str(disk / "state")}
    client = start(env=environment)
    call(client, code="kept = 1\nopen('precious', 'w').write('precious')")
    call(client, "upload_file", name="data", text="old")
    handle = call(client, code="kept").execution["session"]
    fill()

    refused(call(client, "upload_file", name="data", text="new" * 50_000), "disk is full", "still there")
    refused(call(client, "create_session", name="another"), "No space left", "No session was made")
    refused(call(client, code="open('big', 'w').write('x' * 100_000)"), "No space left on device")
    long = call(client, code="print('line\\n' * 50_000)")
    assert not long.is_error
    assert "left out" in long.text
    chart = call(client, code="import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()\nkept")
    if "No module named" not in chart.text:  # the template may have none
        assert len(chart.images) == 1
    assert call(client, code="kept").text.endswith("1")
    begun = time.monotonic()  # cut short after two seconds, which a machine that stalls may take
    assert client.close() == 0 or time.monotonic() - begun > 1.9

    (disk / "filler").unlink()
    client = start(env=environment)
    found = call(client, session=handle, code="print(open('precious').read(), open('data').read())")
    assert "precious old" in found.text
    client.close()

    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    client = start(env=environment)
    refused(call(client), "Read-only file system", "--state-dir")
    refused(call(client, session=handle, code="1"), "Read-only file system", "--state-dir")
    assert handle in call(client, "list_sessions").text
    client.close()
    assert doctor(environment).returncode == 1


@needs_root
def test_what_code_did_to_its_own_directory_is_undone_with_its_kernel(environment, tmp_path):
    """As an ordinary user, which unlike root cannot look into a directory that it may not."""
    binary = tmp_path / "pykeep"
    shutil.copy(program("PYKEEP_BINARY"), binary)
    state = tmp_path / "state"
    state.mkdir()
    os.chown(state, ORDINARY_USER, ORDINARY_USER)
    for directory in [tmp_path, *list(tmp_path.parents)[:2]]:
        directory.chmod(0o755)
    user = ["setpriv", f"--reuid={ORDINARY_USER}", f"--regid={ORDINARY_USER}", "--clear-groups"]
    command = [*user, str(binary)]
    with Client(command, env=environment, cwd="/") as client:
        client.connect()
        shut = call(client, code="import os\nopen('f', 'w').write('x')\nos.chmod('/workspace', 0)")
        assert not shut.is_error, shut.text
        handle = shut.execution["session"]
        refused(call(client, "list_files"), "Permission denied")
    with Client(command, env=environment, cwd="/") as client:
        client.connect()
        assert "f  1 B" in call(client, "list_files", session=handle).text
        again = call(client, session=handle, code="import os; os.listdir('.')")
        assert "['f']" in again.text


# ---- standard streams


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_are_never_taken_for_files_of_its_own(environment, closed):
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    done = subprocess.run(
        ["bash", "-c", f'exec "$0" {closed}', program("PYKEEP_BINARY")],
        env=environment,
        input=ping,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert (b'"result":{}' in done.stdout) == (closed == "2>&-")


def test_output_that_cannot_be_written_is_not_a_success(environment):
    done = subprocess.run(
        ["bash", "-c", 'exec "$0" doctor >/dev/full', program("PYKEEP_BINARY")],
        env=environment,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert b"could not be written" in done.stderr


# ---- ends


def descendants(pid):
    found, pending = set(), [pid]
    while pending:
        for task in pathlib.Path(f"/proc/{pending.pop()}/task").glob("*/children"):
            try:
                children = {int(child) for child in task.read_text().split()} - found
            except OSError:
                continue
            found |= children
            pending += children
    return found


def running(pids):
    def runs(pid):
        try:
            state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state not in "ZX"

    return {pid for pid in pids if runs(pid)}


def is_sleep(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text() == "sleep\n"
    except OSError:
        return False


STUBBORN = (
    "import signal, subprocess\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    "subprocess.Popen('setsid sleep 500 & setsid sleep 500', shell=True)\nwhile True: pass"
)


@pytest.mark.parametrize("how", ["input ends", signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=str)
def test_everything_it_started_ends_with_it(start, how):
    def seconds():
        client = start()
        call(client, code="open('f', 'w').write('kept')")
        client.start("tools/call", {"name": "run_python", "arguments": {"code": STUBBORN}})
        until(lambda: sum(map(is_sleep, descendants(client.process.pid))) == 2)
        started = descendants(client.process.pid)
        assert len(started) >= 4
        begin = time.monotonic()
        if how == "input ends":
            client.close()
        else:
            client.process.send_signal(how)
            client.process.wait(20)
        until(lambda: not running(started))
        return time.monotonic() - begin

    best_of_three(2.5, seconds)  # of which 2 s are the limit


def test_a_server_killed_at_any_moment_leaves_sessions_that_the_next_can_use(start):
    """Killed while a kernel starts, while a file is uploaded, and while a cell runs."""
    upload = {"name": "half", "text": "x" * 8_000_000}
    begun = [
        ("run_python", {"code": "while True: pass"}, 0.3),
        ("upload_file", upload, 0.02),
        ("upload_file", upload, 0.1),
        ("create_session", {"name": "named"}, 0.0),
        ("run_python", {"code": "pass", "session": "named"}, 0.05),
    ]
    handles = []
    for name, arguments, moment in begun:
        client = start()
        handles.append(call(client, code="open('f', 'w').write('kept')").execution["session"])
        client.start("tools/call", {"name": name, "arguments": arguments})
        time.sleep(moment)
        started = descendants(client.process.pid)
        client.process.kill()
        client.process.wait()
        until(lambda started=started: not running(started))
    client = start()
    for handle in handles:
        listing = call(client, session=handle, code="import os; print(open('f').read(), os.listdir())")
        assert "kept" in listing.text
        assert ".part" not in listing.text
