"""Variables outlive the program: kernels put on disk when the client goes, and woken by the next one."""

import os
import re
import signal
import subprocess
import time

import pytest
from conftest import program


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Skips where this machine cannot freeze kernels, with doctor's reason."""
    state = tmp_path_factory.mktemp("doctor")
    told = subprocess.run(
        [program("PYKEEP_BINARY"), "doctor"],
        env={**os.environ, "PYKEEP_STATE_DIR": str(state)},
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout
    line = next((line for line in told.splitlines() if "images" in line), "")
    if re.search(r"\babsent\b|not possible", line):
        pytest.skip(line)


def handle_of(result):
    return result.execution["session"]


def run(client, code, **arguments):
    return client.call_tool("run_python", {"code": code, **arguments})


STATE = """
import asyncio, io, sqlite3, threading
import collections
data = list(range(1000)); table = sqlite3.connect(":memory:")
table.execute("create table t (a)"); table.execute("insert into t values (41)")
def count():
    n = 0
    while True:
        n += 1
        yield n
numbers = count(); next(numbers)
lock = threading.Lock()
text = io.StringIO(); text.write("kept")
"""

CHECK = """
print(sum(data), table.execute("select a + 1 from t").fetchone()[0], next(numbers), lock.locked(), text.getvalue())
"""


def test_kill_the_client_start_it_again_the_variables_are_there(images, start):
    first = start("--session", "work")
    handle = handle_of(run(first, STATE))
    begun = time.monotonic()
    assert first.close() == 0
    assert time.monotonic() - begun < 2
    second = start("--session", "work")
    result = run(second, CHECK)
    assert f"Session {handle} was taken over from disk" in result.text
    assert "after execution 1: variables are kept." in result.text
    assert result.text.endswith("499500 42 2 False kept\n")
    assert result.execution["generation"] == 1
    assert result.execution["execution_count"] == 2


def test_a_client_that_does_not_wait_for_the_old_server_finds_its_variables(images, start):
    first = start("--session", "work")
    run(first, "x = bytes(200_000_000)")
    second = start("--session", "work")
    first.process.stdin.close()
    assert run(second, "len(x)").text.endswith("variables are kept.]\n200000000")


def test_an_unnamed_session_is_found_by_its_handle(images, start):
    first = start()
    handle = handle_of(run(first, "x = 5"))
    first.close()
    second = start()
    assert "NameError" in run(second, "x").text
    assert run(second, "x", session=handle).text.endswith("variables are kept.]\n5")


def test_sigterm_is_as_good_as_the_end_of_the_input(images, start):
    first = start()
    handle = handle_of(run(first, "x = 5"))
    first.process.send_signal(signal.SIGTERM)
    first.process.wait(5)
    assert run(start(), "x", session=handle).text.endswith("\n5")


def test_a_kernel_without_use_sleeps_and_wakes(images, start):
    client = start("--idle-timeout", "1")
    run(client, "x = 5")
    deadline = time.monotonic() + 10
    while "on disk, variables kept" not in client.call_tool("list_sessions").text:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert "variables are kept.]\n5" in run(client, "x").text
    assert run(client, "x + 1").text == "6"


def test_what_was_printed_in_the_background_is_shown_after_the_wake(images, start):
    first = start()
    handle = handle_of(
        run(first, "import threading; t = threading.Timer(0.1, print, ['from a timer']); t.start(); x = 5")
    )
    time.sleep(0.4)
    first.close()
    second = start()
    text = run(second, "x", session=handle).text
    assert re.search(r"(?s)output from the background.*from a timer\n.*\n5$", text), text
    assert run(second, "x", session=handle).text == "5"


def test_what_an_image_cannot_have_is_said_with_the_first_result(images, start):
    first = start()
    handle = handle_of(run(first, "import subprocess; p = subprocess.Popen(['sleep', '1000']); x = 5"))
    first.close()
    text = run(start(), "x", session=handle).text
    assert re.search(r"variables are kept. Not carried over: process \d+ \(sleep\)\.\]\n5$", text), text


@pytest.mark.parametrize(
    "end", ["import os; os.kill(os.getpid(), 11)", "bytearray(1 << 40); x = b'1' * (3 << 30)"]
)
def test_after_a_crash_the_session_goes_back_to_its_checkpoint(images, start, end):
    client = start("--checkpoint-cells", "2", "--memory", "1GiB")
    run(client, "x = 1")
    run(client, "x = 2")
    run(client, "x = 3")
    end = end.replace("bytearray(1 << 40); ", "")
    died = run(client, end)
    if "the kernel died" not in died.text:  # Python noticed before the kernel did
        died = run(client, "import os; os.kill(os.getpid(), 9)")
    lost = re.search(r"checkpoint after execution 2: (executions 3 to \d are lost)", died.text)
    assert lost, died.text
    result = run(client, "x")
    assert lost[1] in result.text
    assert "files in /workspace are not rewound" in result.text
    assert result.text.endswith("\n2")


def test_a_server_that_is_killed_never_passes_off_an_old_state_as_the_last(images, start):
    first = start("--checkpoint-cells", "1")
    handle = handle_of(run(first, "x = 1"))
    run(first, "x = 2")
    time.sleep(0.5)
    first.process.kill()
    first.process.wait(5)
    text = run(start(), "x", session=handle).text
    restored = re.search(r"restored to its state after execution (\d).*executions after \1 are lost", text)
    assert restored, text
    assert text.endswith("\n" + restored[1])


def test_a_damaged_image_is_refused_with_the_reason(images, start, environment, tmp_path):
    first = start()
    handle = handle_of(run(first, "x = 5"))
    first.close()
    session = tmp_path / "state" / "sessions" / handle
    image = next(session.glob("image.*/memory"))  # `base` is the template's, shared with all
    with open(image, "r+b") as file:
        file.seek(image.stat().st_size // 2)
        there = file.read(1)
        file.seek(image.stat().st_size // 2)
        file.write(bytes([there[0] ^ 1]))
    text = run(start(), "x", session=handle).text
    assert "could not be restored, because" in text, text
    assert "NameError" in text
