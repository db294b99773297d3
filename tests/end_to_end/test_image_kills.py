"""kill -9 of the server at random moments of what images are for: all or nothing is left, and nothing besides.

PYKEEP_KILLS (16) is how often, shared among the ways to be killed, all in one state directory. When the
kill comes is drawn from what the same step took without one, so that it meets every part of it.
"""

import os
import random
import re
import subprocess
import time
from dataclasses import dataclass, field

import leftovers
import pytest
from conftest import environment_in, program, put_on_disk, until
from mcp_client import Client
from test_hibernation import images, run  # noqa: F401

KILLS = int(os.environ.get("PYKEEP_KILLS", "16"))
SEED = int(os.environ.get("PYKEEP_KILLS_SEED", "1"))
HANDLE = r"\b[a-z2-7]{26}\b"


@dataclass
class Place:
    state: object
    environment: dict
    killed: list = field(default_factory=list)  # the ids of servers

    def server(self, *options):
        # Checkpoints off: what a session goes back to is what was frozen when the client went, or nothing.
        off = ["--checkpoint-cells", "0", "--checkpoint-seconds", "0"]
        client = Client([program("PYKEEP_BINARY"), *off, *options], env=self.environment)
        client.connect()
        return client

    def pykeep(self, *arguments):
        command = [program("PYKEEP_BINARY"), *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def snapshots(self):
        return re.findall(HANDLE, self.pykeep("snapshots", "list"))


@pytest.fixture(scope="module")
def place(images, tmp_path_factory):  # noqa: F811
    directory = tmp_path_factory.mktemp("kills")
    place = Place(directory / "state", environment_in(directory))
    with place.server() as client:  # bakes an image behind it, where there is none
        session = new_session(client, 0)
        client.call_tool("close_session", {"session": session})
    yield place
    check_nothing_is_left(place)


def handle_in(text):
    found = re.search(HANDLE, text)
    assert found, text
    return found[0]


def kill(client, place):
    client.process.kill()
    client.process.wait(10)
    place.killed.append(client.process.pid)
    # A bubblewrap whose other half died in the moment of its start waits for it, and runs nothing.
    # The next server ends it (check_nothing_is_left).
    until(lambda: all("bwrap --args" in stray for stray in leftovers.strays(place.state)))


def new_session(client, number):
    """Its handle, with something to recognize it by."""
    made = handle_in(client.call_tool("create_session").text)
    text = run(client, f"x = {number}; y = open('f', 'w').write('{number}'); x", session=made).text
    assert text.endswith(str(number)), text
    return made


def check_value(client, session, number):
    text = run(client, "print(x, open('f').read())", session=session).text
    assert text.endswith(f"{number} {number}\n"), text


def moment(seed, work, *arguments):
    """Seconds after which to kill: up to somewhat more than `work`, done once undisturbed, takes."""
    started = time.monotonic()
    work(*arguments)
    return drawn(seed, time.monotonic() - started)


def drawn(seed, seconds):
    return random.Random(seed).uniform(0, 1.3 * seconds)


def on_disk(place, seed):
    """The handle of a session that its server has put on disk at its end, and how long that took."""
    made, took = [], []

    def work():
        client = place.server()
        for session in made:  # for which there was no time
            client.call_tool("close_session", {"session": session})
        made[:] = [new_session(client, seed)]
        return client, made[0]

    def end(client):
        begun = time.monotonic()
        status = client.close()
        took.append(time.monotonic() - begun)
        return status

    return put_on_disk(work, end), took[-1]


def kill_after(seconds, client, place, tool, **arguments):
    """Calls a tool and kills the server then; whether the call had been answered."""
    ident = client.start("tools/call", {"name": tool, "arguments": arguments})
    time.sleep(seconds)
    answered = client.answered(ident)
    kill(client, place)
    return answered


def snapshot(client, session):
    made = client.call_tool("snapshot", {"session": session})
    assert not made.is_error, made.text
    return re.search(f"Snapshot ({HANDLE})", made.text)[1]


def restore(client, **arguments):
    restored = client.call_tool("restore_snapshot", arguments)
    assert not restored.is_error, restored.text
    return handle_in(restored.text)


def rounds(eighths):
    """So much of all kills is this test's: its seeds, which are also the values to be found again."""
    first = SEED * 1_000_000
    return pytest.mark.parametrize("seed", range(first, first + max(1, KILLS * eighths // 8)))


@rounds(3)
def test_while_a_snapshot_is_made(place, seed):
    client = place.server()
    session = new_session(client, seed)
    after = moment(seed, snapshot, client, session)
    known = place.snapshots()
    answered = kill_after(after, client, place, "snapshot", session=session)
    whole = place.snapshots()
    assert set(known) <= set(whole) and len(whole) - len(known) in ([1] if answered else [0, 1])
    with place.server() as client:
        for made in whole:
            fork = restore(client, snapshot=made)
            check_value(client, fork, seed)
            client.call_tool("close_session", {"session": fork})
            client.call_tool("delete_snapshot", {"snapshot": made})
        client.call_tool("close_session", {"session": session})
    assert place.snapshots() == []


@rounds(2)
def test_while_a_session_goes_to_sleep(place, seed):
    session, took = on_disk(place, seed)
    client = place.server()
    check_value(client, session, seed)
    begun = time.monotonic()
    client.process.stdin.close()
    time.sleep(drawn(seed, took))
    # Later than this it may have had no time left for its sessions.
    slept = client.process.poll() == 0 and time.monotonic() - begun < 1.2
    kill(client, place)
    with place.server() as client:
        text = run(client, "x", session=session).text
        kept = text.endswith(f"variables are kept.]\n{seed}")
        lost = "Variables from before are gone" in text and "NameError" in text
        assert kept or (lost and not slept), text
        check_images(place, session)
        client.call_tool("close_session", {"session": session})


@rounds(1)
def test_while_a_session_wakes(place, seed):
    session, _ = on_disk(place, seed)
    client = place.server()
    after = moment(seed, check_value, client, session, seed)
    client.close()
    client = place.server()
    kill_after(after, client, place, "run_python", code="x", session=session)
    with place.server() as client:
        text = run(client, "x", session=session).text
        # What ran in the woken kernel is gone with it; before that nothing is.
        gone = "Variables from before are gone" in text and "NameError" in text
        assert text.endswith(f"\n{seed}") or gone, text
        check_images(place, session)
        client.call_tool("close_session", {"session": session})


@rounds(1)
@pytest.mark.parametrize("in_place", [False, True], ids=["fork", "rollback"])
def test_while_a_snapshot_is_restored(place, seed, in_place):
    client = place.server()
    session = new_session(client, seed)
    made = snapshot(client, session)
    run(client, "x = 'later'; y = open('f', 'w').write('later')", session=session)
    arguments = {"snapshot": made, **({"session": session} if in_place else {})}
    after = moment(seed, lambda: restore(client, **arguments))
    kill_after(after, client, place, "restore_snapshot", **arguments)
    with place.server() as client:
        assert place.snapshots() == [made]
        check_value(client, restore(client, snapshot=made), seed)
        listed = client.call_tool("list_sessions").text
        for each in re.findall(f"^({HANDLE})", listed, re.MULTILINE):
            text = run(client, "x", session=each).text
            assert text.endswith((str(seed), "'later'")) or "Variables from before are gone" in text, text
            client.call_tool("close_session", {"session": each})
        client.call_tool("delete_snapshot", {"snapshot": made})


def check_images(place, session):
    left = [path.name for path in (place.state / "sessions" / session).glob("image.*")]
    assert len(left) <= 1, left


def check_nothing_is_left(place):
    """Once a server has swept, which it does soon after its start: every session and snapshot was deleted."""

    def left():
        return [
            str(path.relative_to(place.state))
            for name in ("sessions", "snapshots", "kernel/spares")
            for path in (place.state / name).glob("*")
            if path.name != "lock"
        ]

    with place.server("--idle-timeout", "4") as client:
        session = handle_in(client.call_tool("create_session").text)
        run(client, "1", session=session)
        client.call_tool("close_session", {"session": session})
        until(lambda: left() == [], 60)
        assert [group for pid in place.killed for group in leftovers.groups_of(pid)] == []
    until(lambda: leftovers.strays(place.state) == [])
