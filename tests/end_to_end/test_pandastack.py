# ruff: noqa: F811 (fixtures)
"""`--backend pandastack`, against the stand-in for PandaStack (tests/fake_pandastack), which counts."""

import hashlib
import os
import pathlib
import re
import subprocess
import time

import pytest
from conftest import program, until
from pandastack import environment, fake, handle_of, kill, python, value  # noqa: F401


def test_a_warm_cell_is_one_request_and_its_output_arrives_in_order(start, fake):
    client = start()
    first = python(client, "x = 41")
    assert not first.is_error, first.text
    before = fake.requests()
    for _ in range(5):
        text = value(client, "print('a'); x += 1; x")
    assert "a\n" in text and "46" in text
    assert fake.requests() - before == 5

    chart = python(
        client, "import matplotlib.pyplot as plt\nprint('one')\nplt.plot([1, 2]); plt.show()\nprint('two')"
    )
    assert chart.images and chart.text.index("one") < chart.text.index("two")
    assert "ZeroDivisionError" in python(client, "1/0").text
    assert "47" in value(client, "x + 1")


def test_a_cell_is_stopped_at_its_limit_and_asks_questions(start):
    client = start(answer=lambda params: {"action": "accept", "content": {"value": "Ada"}})
    value(client, "x = 1")
    late = python(client, "import time\nprint('begun'); time.sleep(60)", timeout=1)
    assert late.is_error and "variables are kept" in late.text and "begun" in late.text
    assert late.seconds < 30
    assert "Ada" in value(client, "input('Name? ')")
    running = python(client, "import time\nfor i in range(600): print(i, flush=True); time.sleep(.1)", wait=3)
    assert "running" in running.text and "0\n1\n" in running.text
    stopped = client.call_tool("interrupt_execution", {"execution": running.execution["execution"]})
    assert "variables are kept" in stopped.text
    assert "1" in value(client, "x")


def test_the_memory_that_is_named_is_the_microvms(start):
    result = python(start("--memory", "512MiB"), "raise MemoryError")
    assert "the sandbox has 2 GiB of memory" in result.text, result.text


def test_files_come_and_go_whole(start, tmp_path):
    client = start("--upload-root", str(tmp_path))
    big = tmp_path / "big.bin"
    big.write_bytes(os.urandom(1 << 20) * 33)  # more than the API takes at once
    uploaded = client.call_tool("upload_file", {"name": "data/big.bin", "path": "big.bin"})
    assert not uploaded.is_error, uploaded.text
    text = value(client, "import hashlib\nhashlib.sha256(open('data/big.bin', 'rb').read()).hexdigest()")
    assert hashlib.sha256(big.read_bytes()).hexdigest() in text
    value(client, "open('out ü.txt', 'w').write('grüße')\nimport os\nos.symlink('/etc/passwd', 'link')")
    assert "grüße" in client.call_tool("download_file", {"path": "out ü.txt"}).text
    listing = client.call_tool("list_files", {}).text
    assert "data/big.bin" in listing and "(link)" in listing and ".pykeep" not in listing
    for path in ("link", "../etc/passwd", "/etc/passwd", "nothing"):
        assert client.call_tool("download_file", {"path": path}).is_error


def test_three_sessions_outlive_a_killed_server(start, fake):
    client = start()
    handles = []
    for i in range(3):
        made = client.call_tool("create_session", {"name": f"s{i}"})
        assert "internet access" in made.text and "Network: on" in made.text
        handles.append(handle_of(made))
        value(client, f"x = {100 + i}", session=handles[-1])
    assert len(fake.sandboxes()) == 3
    kill(client)
    after = start()
    for i, handle in enumerate(handles):
        result = python(after, "x", session=handle)
        assert f"{100 + i}" in result.text and "variables are kept" in result.text, result.text
    assert len(fake.sandboxes()) == 3  # adopted, not made anew
    for handle in handles:
        after.call_tool("close_session", {"session": handle})
    until(lambda: not fake.sandboxes())


def test_a_cell_that_ran_when_the_server_was_killed_is_not_run_again(start):
    client = start()
    made = client.call_tool("create_session", {})
    handle = handle_of(made)
    value(client, "n = 0", session=handle)
    code = "import time\nn += 1\nprint('begun', flush=True)\ntime.sleep(60)"
    running = python(client, code, session=handle, wait=1)
    ident = {"execution": running.execution["execution"], "wait": 0}
    assert "running" in until(
        lambda: "begun" in (now := client.call_tool("wait_execution", ident).text) and now
    )
    kill(client)
    after = start()
    assert "1" in value(after, "print('n is', n)", session=handle)


def test_snapshot_kill_everything_restore_and_fork(start, fake):
    client = start()
    handle = handle_of(client.call_tool("create_session", {}))
    value(client, "import random\nx = 41\nopen('f', 'w').write('then')", session=handle)
    taken = client.call_tool("snapshot", {"session": handle, "name": "good"})
    assert not taken.is_error and "7 days" in taken.text, taken.text
    value(client, "x = 0; open('f', 'w').write('now')", session=handle)
    back = client.call_tool("restore_snapshot", {"snapshot": "good", "session": handle})
    assert not back.is_error, back.text
    assert "41 then" in value(client, "print(x, open('f').read())", session=handle)
    assert len(fake.sandboxes()) >= 1

    kill(client)
    for sandbox in fake.sandboxes():
        fake.ask("PATCH", f"/v1/sandboxes/{sandbox}/lifecycle", {"ttl_seconds": 1})
    fake.tick(60)
    assert not fake.sandboxes()

    after = start()
    forks = [after.call_tool("restore_snapshot", {"snapshot": "good"}) for _ in range(2)]
    drawn = set()
    for fork in forks:
        assert not fork.is_error, fork.text
        text = value(after, "print(x, open('f').read(), random.random())", session=handle_of(fork))
        assert "41 then" in text
        drawn.add(text.splitlines()[-1])
    assert len(drawn) == 2
    lost = python(after, "x", session=handle)  # its sandbox expired
    assert lost.is_error and "Variables and files from before are gone" in lost.text, lost.text


def test_a_session_that_has_run_nothing_comes_back_from_a_snapshot(start):
    client = start()
    handle = handle_of(client.call_tool("create_session", {}))
    assert not client.call_tool("snapshot", {"session": handle, "name": "empty"}).is_error
    assert "5" in value(client, "x = 5; x", session=handle)
    restored = client.call_tool("restore_snapshot", {"snapshot": "empty"})
    assert not restored.is_error, restored.text
    assert "False" in value(client, "'x' in globals()", session=handle_of(restored))


def test_closing_a_session_deletes_its_sandbox_but_not_its_snapshots(start, fake):
    client = start()
    handle = handle_of(client.call_tool("create_session", {}))
    value(client, "x = 7", session=handle)
    client.call_tool("snapshot", {"session": handle, "name": "kept"})
    client.call_tool("close_session", {"session": handle})
    until(lambda: fake.tick(60) or not fake.sandboxes())
    restored = client.call_tool("restore_snapshot", {"snapshot": "kept"})
    assert not restored.is_error, restored.text
    assert "7" in value(client, "x", session=handle_of(restored))
    assert len(fake.counters()["snapshots"]) >= 1
    assert not client.call_tool("delete_snapshot", {"snapshot": "kept"}).is_error


def test_an_idle_session_is_hibernated_and_wakes(start, fake):
    client = start("--idle-timeout", "1")
    handle = handle_of(client.call_tool("create_session", {}))
    value(client, "x = 5", session=handle)
    until(lambda: set(fake.sandboxes().values()) == {"hibernated"})
    result = python(client, "x", session=handle)
    assert "5" in result.text and "variables are kept" in result.text, result.text


def test_the_end_of_the_input_hibernates_or_leaves_what_is_found_again(start, fake):
    client = start()
    handle = handle_of(client.call_tool("create_session", {"name": "again"}))
    value(client, "x = 6", session=handle)
    client.close()
    result = python(start(), "x", session="again")
    assert "6" in result.text and "variables are kept" in result.text, result.text


@pytest.mark.parametrize(
    "defect",
    [
        {"cut_proxy_bytes": {"value": 300, "times": 3}},
        {"cut_proxy_seconds": {"value": 0.3, "times": 2}},
        {"drop_before": {"times": 2, "only": "*proxy*"}},
        {"drop_after": {"times": 2, "only": "*proxy*"}},
        {"unreachable_after": {"times": 2, "only": "*proxy*"}},
    ],
    ids=lambda defect: next(iter(defect)),
)
def test_a_lost_connection_never_repeats_a_cell(start, fake, defect):
    client = start()
    value(client, "n = 0")
    fake.defects(**defect)
    text = value(client, "import time\nn += 1\nfor i in range(8): print('line', i); time.sleep(.1)\nn")
    assert [int(i) for i in re.findall(r"line (\d)", text)] == list(range(8))
    fake.defects()
    assert "1" in value(client, "print('n is', n)").split("n is")[1]


def test_without_a_proxy_requests_go_by_exec(start, fake):
    fake.defects(no_proxy=True)
    client = start()
    value(client, "x = 1")
    fake_before = fake.requests()
    assert "2" in value(client, "x + 1")
    assert fake.requests() - fake_before == 1


def test_refusals_are_told_and_leave_nothing(start, fake, environment):
    client = start()
    handle = handle_of(client.call_tool("create_session", {"template": "nope"}))
    refused = python(client, "1", session=handle)
    assert refused.is_error and "unknown template" in refused.text, refused.text
    assert not fake.sandboxes()
    assert "2" in value(client, "1 + 1")
    environment["PANDASTACK_API_KEY"] = "pds_" + "0" * 32
    refused = python(start(), "1")
    assert refused.is_error and "does not accept the key" in refused.text, refused.text
    assert "0" * 32 not in refused.text


def test_the_vendors_own_kernel_when_asked_for(start):
    client = start("--pandastack-carrier", "repl")
    made = client.call_tool("create_session", {})
    assert "cannot be interrupted" in made.text
    handle = handle_of(made)
    text = value(client, "x = 41\nprint('hi')\nx + 1", session=handle)
    assert "hi\n" in text and "42" in text
    assert "grüße" in value(client, "y = 'grüße'\nprint(y)\ny.upper()", session=handle)
    assert "ZeroDivisionError" in python(client, "1/0", session=handle).text
    assert python(client, "import matplotlib.pyplot as p\np.plot([1, 2])", session=handle).images
    assert client.call_tool("snapshot", {"session": handle}).is_error
    assert "41" in value(client, "x", session=handle)


def test_a_crash_is_reaped_by_the_next_server(start, fake, environment):
    client = start()
    handle = handle_of(client.call_tool("create_session", {}))
    value(client, "x = 1", session=handle)
    kill(client)
    # The session goes while no server runs, as by `pykeep sessions close` without a connection.
    for record in pathlib.Path(environment["PYKEEP_STATE_DIR"]).glob("pandastack/sessions/*/session.json"):
        record.parent.joinpath("sandbox.json").unlink()
        record.unlink()
    after = start()
    value(after, "1")
    until(lambda: len(fake.sandboxes()) == 1)


def test_a_record_that_cannot_be_read_costs_nobody_a_microvm(start, fake, environment):
    client = start()
    value(client, "x = 1", session=handle_of(client.call_tool("create_session", {})))
    kill(client)
    (record,) = pathlib.Path(environment["PYKEEP_STATE_DIR"]).glob("pandastack/sessions/*/sandbox.json")
    record.write_text("{")
    after = start()
    value(after, "1")
    time.sleep(1)  # for the look that a server has at its first session
    assert len(fake.sandboxes()) == 2


def test_doctor_looks_at_the_key_and_a_real_kernel(fake, environment):
    good = subprocess.run(
        [program("PYKEEP_BINARY"), "doctor"], env=environment, capture_output=True, text=True
    )
    assert good.returncode == 0 and "Safe" in good.stdout, good.stdout + good.stderr
    until(lambda: not fake.sandboxes())
    wrong = {**environment, "PANDASTACK_API_KEY": "pds_" + "0" * 32}
    bad = subprocess.run([program("PYKEEP_BINARY"), "doctor"], env=wrong, capture_output=True, text=True)
    assert bad.returncode == 1 and "PANDASTACK_API_KEY" in bad.stdout
    assert "0" * 32 not in bad.stdout + bad.stderr


def test_without_a_key_the_first_call_says_so(start, environment):
    environment["PANDASTACK_API"] = "https://api.invalid"
    environment["HOME"] = environment["XDG_CONFIG_HOME"] = "/nonexistent"
    environment.pop("PANDASTACK_API_KEY")
    result = start().call_tool("run_python", {"code": "1"})
    assert result.is_error and "PANDASTACK_API_KEY" in result.text
