"""What is done with the files of a guest (sandbox/pandastack/guest/workspace.py) may be done twice: by a client that
did not learn what became of it, and by PandaStack, also at once."""

import base64
import errno
import json
import os
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "sandbox/pandastack/guest/workspace.py"
SIZE = 100  # of a part


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.txt").write_bytes(b"alpha")
    (tmp_path / ".pykeep").mkdir()
    return tmp_path


def begin(workspace, op, path, **given):
    given |= {"op": op, "path": base64.b64encode(os.fsencode(path)).decode()}
    return subprocess.Popen(
        [sys.executable, "-I", str(SCRIPT), json.dumps(given)],
        env={**os.environ, "PYKEEP_WORKSPACE": str(workspace)},
        stdout=subprocess.PIPE,
    )


def ask(*arguments, **given):
    process = begin(*arguments, **given)
    said = process.communicate(timeout=30)[0]
    assert process.returncode == 0
    return json.loads(said)


def put_parts(workspace, content):
    """What `finish` is given for `content`, whose parts are there."""
    parts = []
    for number, start in enumerate(range(0, len(content), SIZE)):
        parts.append(f"part-{number}")
        (workspace / ".pykeep" / parts[-1]).write_bytes(content[start : start + SIZE])
    return {"parts": parts, "part_size": SIZE, "size": len(content)}


TWICE = [
    ("stat", "data/a.txt", {}),
    ("stat", "nothing", {}),
    ("list", ".", {"depth": 3, "cap": 10}),
    ("read", "data/a.txt", {"offset": 1, "size": 3}),
    ("open", "data/a.txt", {"as": "open-1"}),
    ("check", "data/b.txt", {}),
    ("drop", ".", {"parts": ["part-0"]}),
    ("used", ".", {"enough": 1 << 30}),
]


@pytest.mark.parametrize("op, path, given", TWICE, ids=lambda each: each if isinstance(each, str) else "")
def test_twice_is_as_once(workspace, op, path, given):
    once = ask(workspace, op, path, **given)
    assert ask(workspace, op, path, **given) == once


def test_a_file_that_is_open_stays_as_it_is(workspace):
    opened = ask(workspace, "open", "data/a.txt", **{"as": "open-1"})
    (workspace / "data/b.txt").write_bytes(b"beta!!")
    os.replace(workspace / "data/b.txt", workspace / "data/a.txt")
    assert ask(workspace, "open", "data/a.txt", **{"as": "open-1"}) == opened
    read = ask(workspace, "read", ".pykeep/open-1", offset=0, size=10)
    assert base64.b64decode(read["bytes"]) == b"alpha"


CONTENT = os.urandom(3 * SIZE + 7)


def test_a_file_that_was_put_in_place_is_there_the_second_time(workspace):
    given = put_parts(workspace, CONTENT)
    placed = ask(workspace, "finish", "new/b.bin", **given)
    assert (workspace / "new/b.bin").read_bytes() == CONTENT
    assert ask(workspace, "finish", "new/b.bin", **given) == placed
    assert (workspace / "new/b.bin").read_bytes() == CONTENT


def test_two_at_once_put_it_in_place_once(workspace):
    given = put_parts(workspace, CONTENT)
    both = [begin(workspace, "finish", "b.bin", **given) for _ in range(2)]
    first, second = (json.loads(process.communicate(timeout=30)[0]) for process in both)
    assert first == second and "error" not in first
    assert (workspace / "b.bin").read_bytes() == CONTENT


def test_what_was_joined_half_is_joined_whole(workspace):
    given = put_parts(workspace, CONTENT)
    own = workspace / ".pykeep"
    (own / "part-0").write_bytes(CONTENT[: 2 * SIZE + 20])  # part 1 is in it, and some of part 2
    (own / "part-1").unlink()
    ask(workspace, "finish", "b.bin", **given)
    assert (workspace / "b.bin").read_bytes() == CONTENT


def test_what_lacks_a_part_is_not_put_in_place(workspace):
    given = put_parts(workspace, CONTENT)
    (workspace / ".pykeep/part-2").unlink()
    (workspace / "b.bin").write_bytes(b"before")
    assert ask(workspace, "finish", "b.bin", **given)["error"] == errno.EIO
    (workspace / ".pykeep/part-0").unlink()
    assert ask(workspace, "finish", "b.bin", **given)["error"] == errno.ENOENT
    assert (workspace / "b.bin").read_bytes() == b"before"
