"""Snapshots of real kernels: forks, rollbacks, what cannot be carried, and the command line."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import program, put_on_disk
from test_hibernation import handle_of, images, run, session_on_disk  # noqa: F401


@pytest.fixture(scope="module")
def server(images, shared_server):  # noqa: F811
    return shared_server.client


def snapshot(client, **arguments):
    result = client.call_tool("snapshot", arguments)
    assert not result.is_error, result.text
    return re.search(r"Snapshot ([a-z2-7]{26})", result.text)[1]


def restore(client, snapshot, **arguments):
    result = client.call_tool("restore_snapshot", {"snapshot": snapshot, **arguments})
    assert not result.is_error, result.text
    return re.search(r"Session ([a-z2-7]{26})", result.text)[1]


def new_session(client):
    return re.search(r"session[ =\"]+([a-z2-7]{20,})", client.call_tool("create_session").text)[1]


def test_eight_forks_live_apart(server):
    origin = new_session(server)
    run(server, "x = 1; open('f', 'w').write('one')", session=origin)
    made = snapshot(server, session=origin)
    run(server, "x = 2; open('f', 'w').write('two')", session=origin)
    forks = [restore(server, made) for _ in range(8)]
    for i, fork in enumerate(forks):
        assert run(server, f"print(x, open('f').read()); x = {i + 10}", session=fork).text.endswith("1 one\n")
    assert [run(server, "x", session=fork).text for fork in forks] == [str(i + 10) for i in range(8)]
    assert run(server, "print(x, open('f').read())", session=origin).text == "2 two\n"
    for fork in forks:
        server.call_tool("close_session", {"session": fork})


SEEDED = """
import random, uuid, secrets, numpy as np
random.seed(7); np.random.seed(7); generator = np.random.default_rng(7)
"""


def test_forks_differ_in_their_random_numbers_and_a_rollback_does_not(server):
    origin = new_session(server)
    run(server, SEEDED, session=origin)
    made = snapshot(server, session=origin)
    draw = "print(random.random(), np.random.rand(), uuid.uuid4(), secrets.token_hex(8))"
    lines = []
    for _ in range(2):
        fork = restore(server, made)
        lines.append(run(server, draw, session=fork).text.splitlines()[-1].split())
        server.call_tool("close_session", {"session": fork})
    assert all(one != other for one, other in zip(*lines))
    exactly = "random.random(), np.random.rand(), generator.random()"
    before = run(server, exactly, session=origin).text
    restore(server, made, session=origin)
    assert run(server, exactly, session=origin).text == before


def test_sessions_of_one_template_differ_in_their_random_numbers(server):
    draw = (
        "import random, uuid, secrets, tempfile, numpy as np\n"
        "print(random.random(), np.random.rand(), uuid.uuid4(), secrets.token_hex(8), tempfile.mktemp())"
    )
    sessions = [new_session(server) for _ in range(2)]
    lines = [run(server, draw, session=each).text.splitlines()[-1].split() for each in sessions]
    assert all(one != other for one, other in zip(*lines)), lines


def test_a_rollback_takes_memory_and_files_back(server):
    session = new_session(server)
    run(server, "x = [1]; open('old', 'w').write('old')", session=session)
    made = snapshot(server, session=session, name="before")
    run(server, "import os; x.append(2); os.remove('old'); open('new', 'w').write('new')", session=session)
    assert restore(server, "before", session=session) == session
    assert (
        run(
            server,
            "print(x, os.listdir('.') if 'os' in dir() else __import__('os').listdir('.'))",
            session=session,
        ).text
        == "[1] ['old']\n"
    )
    assert "before" in server.call_tool("list_sessions").text
    server.call_tool("delete_snapshot", {"snapshot": made})
    assert "before" not in server.call_tool("list_sessions").text
    # Deleted: the session that came from it goes on.
    assert run(server, "x.append(3); x", session=session).text == "[1, 3]"


MAPS_FILES_OF_ITS_WORKSPACE = """
import importlib.machinery, importlib.util, mmap, os, pathlib, shutil
import numpy as np
library = next(pathlib.Path(mmap.__file__).parent.glob("_lsprof.*.so"))
os.makedirs(".packages/lib", exist_ok=True)
shutil.copyfile(library, ".packages/lib/_lsprof.so")
loader = importlib.machinery.ExtensionFileLoader("_lsprof", "/workspace/.packages/lib/_lsprof.so")
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("_lsprof", loader))
loader.exec_module(module)
profiler = module.Profiler()
np.arange(1000.0).tofile("data")
shared = np.memmap("data", float, "r+")
private = np.memmap("data", float, "c")
private[1] = -1
"""

WORKS = "profiler.enable(); profiler.disable(); print(shared[:3].sum(), private[:3].sum(), os.getcwd())"


def test_a_copy_of_the_workspace_has_the_mapped_files(server, start):
    """A forked and a rolled back session have other files of the same names: np.memmap, installed libraries."""
    session = new_session(server)
    assert not run(server, MAPS_FILES_OF_ITS_WORKSPACE, session=session).is_error
    made = snapshot(server, session=session)
    run(server, "shared[0] = 100; shared.flush()", session=session)
    fork = restore(server, made)
    assert run(server, WORKS, session=fork).text.endswith("3.0 1.0 /workspace\n")
    again = restore(server, snapshot(server, session=fork))
    assert run(server, WORKS, session=again).text.endswith("3.0 1.0 /workspace\n")
    restore(server, made, session=session)
    assert run(server, WORKS, session=session).text.endswith("3.0 1.0 /workspace\n")
    for each in (fork, again, session):
        server.call_tool("close_session", {"session": each})
    handle = session_on_disk(start, MAPS_FILES_OF_ITS_WORKSPACE)
    woken = run(start(), WORKS, session=handle)
    assert woken.text.endswith("3.0 1.0 /workspace\n"), woken.text


GONE = {
    "f = open('data', 'rb')": ("data", "cannot open: /workspace/data: it is not there any more"),
    "import os; os.makedirs('a/b'); os.chdir('a/b')": (
        "a",
        "cannot go to its directory: /workspace/a/b: it is not there any more",
    ),
    "import numpy as np; m = np.memmap('data', 'u1', 'r')": ("data", "cannot open: /workspace/data"),
    "import os, sys; os.dup2(os.open('log', os.O_CREAT | os.O_WRONLY), 2)": ("log", "/workspace/log"),
}


@pytest.mark.parametrize("code", GONE)
def test_a_file_that_went_meanwhile_is_named(images, start, environment, code):  # noqa: F811
    handle = session_on_disk(start, "open('data', 'wb').write(b'x' * 9000);" + code + "; x = 5")
    name, said = GONE[code]
    path = pathlib.Path(environment["PYKEEP_STATE_DIR"]) / "sessions" / handle / "workspace" / name
    assert path.exists()
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    text = run(start(), "x", session=handle).text
    assert said in text and "Variables from before are gone" in text, text


def test_images_that_are_not_the_snapshots_own_are_refused(images, start, environment):  # noqa: F811
    """Cut short, of another snapshot, forged records, another template image: the session goes on."""
    client = start()
    handle = handle_of(run(client, "x = 1"))
    state = pathlib.Path(environment["PYKEEP_STATE_DIR"]) / "snapshots"
    other = state / snapshot(client, name="other") / "image"
    run(client, "x = 2")

    def cut(image):
        os.truncate(image / "memory", (image / "memory").stat().st_size // 2)

    def swap(image):
        image.rename(state / "aside")
        other.rename(image)
        (state / "aside").rename(other)

    def forge(image):
        record = json.loads((image / "kernel.json").read_text())
        (image / "kernel.json").write_text(json.dumps({**record, "python": "/bin/sh"}))

    def base(image):
        shutil.copyfile(other / "memory", image / "aside")
        (image / "aside").replace(image / "base")

    for damage in (cut, swap, forge, base):
        made = snapshot(client)
        damage(state / made / "image")
        for target in ({}, {"session": handle}):
            refused = client.call_tool("restore_snapshot", {"snapshot": made, **target})
            assert refused.is_error and "cannot be restored: " in refused.text, (damage, refused.text)
            assert re.search("damaged|not the one", refused.text), (damage, refused.text)
        assert run(client, "x").text == "2"


def test_what_cannot_be_carried_is_refused_by_name(server):
    session = new_session(server)
    run(server, "import subprocess; p = subprocess.Popen(['sleep', '1000']); x = 1", session=session)
    refused = server.call_tool("snapshot", {"session": session})
    assert refused.is_error
    assert "The kernel cannot be frozen" in refused.text
    assert "the session goes on" in refused.text
    run(server, "p.kill(); p.wait()", session=session)
    made = snapshot(server, session=session)
    server.call_tool("delete_snapshot", {"snapshot": made})


def test_a_large_array_is_carried_whole(server):
    session = new_session(server)
    run(
        server,
        "import hashlib; b = bytearray(__import__('random').Random(1).randbytes(64 << 20))",
        session=session,
    )
    digest = run(server, "hashlib.sha256(b).hexdigest()", session=session).text
    fork = restore(server, snapshot(server, session=session))
    assert run(server, "hashlib.sha256(b).hexdigest()", session=fork).text.endswith(digest)
    server.call_tool("close_session", {"session": fork})


def test_the_operator_sees_and_deletes_them(images, start, environment):  # noqa: F811
    def pykeep(*arguments):
        return subprocess.run(
            [program("PYKEEP_BINARY"), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def work():
        client = start("--session", "work")
        run(client, "x = 1")
        return client, client

    client, _ = work()
    made = snapshot(client, name="mine")
    assert f'{made} "mine"' in pykeep("snapshots", "list").stdout
    assert "execution: 1" in pykeep("snapshots", "show", made).stdout
    assert pykeep("snapshots", "delete", made).returncode == 0
    assert pykeep("snapshots", "list").stdout == ""
    assert pykeep("snapshots", "show", made).returncode == 1
    handle = pykeep("sessions", "list").stdout.split()[2]
    assert "runs" in pykeep("sessions", "close", handle).stderr
    client.close()
    put_on_disk(work)
    assert "variables and files" in pykeep("sessions", "list").stdout
    assert pykeep("sessions", "close", handle).returncode == 0
    assert pykeep("sessions", "list").stdout == ""
