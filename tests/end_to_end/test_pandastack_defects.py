# ruff: noqa: F811 (fixtures)
"""Each switch of the stand-in for PandaStack, once: what is done meanwhile works as ever, or its result says why not.

`Scene` has what is done, with a server that stays; the table says what comes of it. Whatever came, a cell ran once, and the
session and its variables are there afterwards.
"""

import contextlib
import itertools
import re

import pytest
from conftest import environment_in, program, until
from mcp_client import Client
from pandastack import FAKE, KEY, Fake, fake, handle_of, python  # noqa: F401

SANDBOXES = "POST /v1/sandboxes"
SNAPSHOTS = "POST /v1/sandboxes/{id}/snapshots"
EXEC, PROXY, FILES = "*/exec", "*/proxy/*", "*/files*"


def times(number, only, **more):
    return {"times": number, "only": only, **more}


class Scene:
    """A session that has run already, by one carrier."""

    def __init__(self, fake, directory, carrier):
        self.fake = fake
        variables = environment_in(directory) | {"PANDASTACK_API": fake.base, "PANDASTACK_API_KEY": KEY}
        self.client = Client(
            [program("PYKEEP_BINARY"), "--backend", "pandastack", "--pandastack-carrier", carrier],
            env=variables,
            timeout=120,
        )
        self.client.connect()
        self.names = (f"n{i}" for i in itertools.count())
        self.session = handle_of(self.tool("create_session"))
        self.ran = 0
        python(self.client, "n = 0", session=self.session)

    def tool(self, tool, **arguments):
        return self.client.call_tool(tool, arguments)

    def cell(self):
        """Adds 1 to n, and says all it has to."""
        result = python(self.client, "n += 1\nprint('begun')\nn", session=self.session)
        if not result.is_error:
            self.ran += 1
            assert "begun" in result.text and result.text.split()[-1] == str(self.ran), result.text
        return result

    def file(self):
        content = "0123456789" * 20_000
        up = self.tool("upload_file", session=self.session, name="f", text=content)
        if up.is_error:
            return up
        result = python(self.client, "len(open('f').read())", session=self.session)
        assert "200000" in result.text, result.text
        return self.tool("download_file", session=self.session, path="f")

    def create(self):
        made = self.tool("create_session")
        result = python(self.client, "x = 41\nx + 1", session=handle_of(made))
        if not result.is_error:
            assert "42" in result.text, result.text
        self.tool("close_session", session=handle_of(made))
        return result

    def snapshot(self):
        name = next(self.names)
        taken = self.tool("snapshot", session=self.session, name=name)
        if taken.is_error:
            return taken
        back = self.tool("restore_snapshot", snapshot=name)
        if not back.is_error:
            there = python(self.client, "n", session=handle_of(back))
            assert there.text.split()[-1] == str(self.ran), there.text
            self.tool("close_session", session=handle_of(back))
        deleted = self.tool("delete_snapshot", snapshot=name)
        return deleted if deleted.is_error else back


WORKS = None
TABLE = [
    # what is done, the switch, its value, what the result says then
    ("create", "require_auth", True, WORKS),
    ("create", "unscoped", True, WORKS),
    ("create", "june", True, WORKS),
    ("create", "no_ipython", True, "IPython"),
    ("create", "no_memory", 1, WORKS),
    ("create", "unreachable_before", times(1, SANDBOXES), "It may have been done all the same"),
    ("create", "drop_after", times(1, SANDBOXES), WORKS),
    ("create", "wrong_content_type", 8, WORKS),
    ("create", "warmup_errors", 3, WORKS),
    ("create", "lost_lease", 3, WORKS),
    ("create", "duplicated_exec", 3, WORKS),
    ("create", "drop_after", times(1, EXEC), WORKS),
    ("cell", "storm_429", times(2, PROXY), WORKS),
    ("cell", "unavailable_503", times(1, PROXY), WORKS),
    ("cell", "panic", times(1, PROXY), WORKS),
    ("cell", "drop_before", times(1, PROXY), WORKS),
    ("cell", "unreachable_after", times(1, PROXY), WORKS),
    ("cell", "paused_409", False, WORKS),
    ("cell", "unicode_hang", False, WORKS),
    ("cell", "fd1_corruption", False, WORKS),
    ("cell", "rate_limit", True, WORKS),
    ("cell", "delay_ms", 50, WORKS),
    ("cell", "proxy_flush_ms", 100, WORKS),
    ("cell", "cut_proxy_bytes", times(2, PROXY, value=100), WORKS),
    ("cell", "cut_proxy_seconds", times(1, PROXY, value=0.01), WORKS),
    ("cell by exec", "cut_stream_bytes", {"times": 2, "value": 30}, WORKS),
    ("cell by exec", "cut_stream_seconds", {"times": 1, "value": 0.05}, WORKS),
    ("cell by exec", "duplicated_exec", 1, WORKS),
    ("file", "slow_upload", 400_000, WORKS),
    ("file", "cut_upload_bytes", 1000, "What was at this path before is still there"),
    ("file", "cut_answer_bytes", times(1, EXEC, value=10), WORKS),
    ("file", "drop_after", times(1, EXEC), WORKS),
    ("file", "duplicated_exec", 4, WORKS),
    ("file", "unreachable_after", times(1, EXEC), WORKS),
    ("snapshot", "no_postgres", True, WORKS),
    ("snapshot", "object_store", True, WORKS),
    ("snapshot", "cascade_delete", False, WORKS),
    ("snapshot", "slow_snapshot", 0.5, WORKS),
    ("snapshot", "unavailable_503", times(1, SNAPSHOTS), "try again in 5 s. No snapshot was made"),
    ("snapshot", "panic", times(1, SNAPSHOTS), "HTTP 500"),
]


def names_in(part):
    """Of the stand-in's switches."""
    source = (FAKE / "defects.py").read_text()
    return re.findall(r'^    "(\w+)"', re.search(rf"^{part} = \{{\n(.*?)^\}}", source, re.M | re.S)[1], re.M)


LASTING = names_in("LASTING")
ELSEWHERE = {
    "no_proxy": "test_pandastack.py: test_without_a_proxy_requests_go_by_exec",
    "no_compute": "below",
    "wake_fails": "below",
    "kill_kernel": "below",
    "random": "test_pandastack_faults.py",
    "failed_child": "fork-tree is not used",
}


@pytest.fixture(scope="module")
def scenes(fake, tmp_path_factory):
    with contextlib.ExitStack() as stack:
        made = {}

        def scene(carrier):
            if carrier not in made:
                made[carrier] = Scene(fake, tmp_path_factory.mktemp(carrier), carrier)
                stack.callback(made[carrier].client.close)
            return made[carrier]

        yield scene


@pytest.mark.parametrize("deed, switch, value, says", TABLE, ids=lambda each: str(each)[:30])
def test_a_switch(fake, scenes, deed, switch, value, says):
    fake.defects()
    scene = scenes("exec" if deed.endswith("by exec") else "proxy")
    before, strikes = len(fake.sandboxes()), fake.strikes(switch)
    fake.defects(**{switch: value})
    result = getattr(scene, deed.split()[0])()
    fake.defects()
    assert switch in LASTING or fake.strikes(switch) > strikes, "it did not come to it"
    if says is WORKS:
        assert not result.is_error, result.text
    else:
        assert result.is_error and says in result.text, result.text
    assert KEY not in result.text and "internal error" not in result.text
    assert not scene.cell().is_error
    fake.tick(2)  # what is to expire does
    until(
        lambda: len(fake.sandboxes()) <= before
    )  # and nothing of this is behind it when the next one begins


def test_every_switch_is_in_the_table():
    names = set(LASTING) | set(names_in("COUNTED")) | set(names_in("THRESHOLDS"))
    assert len(names) > 30
    assert names == {row[1] for row in TABLE} | set(ELSEWHERE)


def test_a_session_waits_for_capacity(fake, scenes):
    fake.defects(no_compute=True)
    scene = scenes("proxy")
    handle = handle_of(scene.tool("create_session"))
    waits = python(scene.client, "6 * 7", session=handle, wait=0.5)
    assert "queued: the kernel is starting" in waits.text
    fake.defects()
    assert "42" in scene.tool("wait_execution", execution=waits.execution["execution"]).text
    scene.tool("close_session", session=handle)


def test_a_sandbox_that_does_not_wake_is_told(fake, tmp_path):
    with Fake() as own:
        scene = Scene(own, tmp_path, "proxy")
        scene.cell()
        sandbox = next(iter(own.sandboxes()))
        own.ask("POST", f"/v1/sandboxes/{sandbox}/hibernate")
        own.defects(wake_fails=2)
        assert not scene.cell().is_error
        own.ask("POST", "/_fake/expire", {"id": sandbox})
        lost = python(scene.client, "n", session=scene.session)
        assert lost.is_error and "gone" in lost.text, lost.text
        again = python(scene.client, "n = 0", session=scene.session)
        assert "Variables and files from before are gone" in lost.text + again.text, again.text
        own.ask("POST", "/_fake/agent-restart")
        told = lost.text + python(scene.client, "n", session=scene.session).text
        assert "gone" in told
        scene.client.close()


def test_the_vendors_kernel_that_dies_is_told(fake, tmp_path):
    scene = Scene(fake, tmp_path, "repl")
    fake.defects(kill_kernel=1)
    died = python(scene.client, "n", session=scene.session)
    assert died.is_error and "not run again by itself" in died.text, died.text
    assert not python(scene.client, "n = 0", session=scene.session).is_error
    scene.client.close()
