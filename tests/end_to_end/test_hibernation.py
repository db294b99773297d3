"""Variables outlive the program: kernels put on disk when the client goes, and woken by the next one."""

import itertools
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest
from conftest import program, put_on_disk, until
from mcp_client import ToolResult


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


def session_on_disk(start, code):
    """The handle of a session that has run this, and whose server has put it on disk."""

    def work():
        client = start()
        return client, handle_of(run(client, code))

    return put_on_disk(work)


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
    names = itertools.count()

    def work():
        name = f"work{next(names)}"
        first = start("--session", name)
        return first, (name, handle_of(run(first, STATE)))

    name, handle = put_on_disk(work)  # within two seconds
    second = start("--session", name)
    result = run(second, CHECK)
    assert f"Session {handle} was taken over from disk" in result.text
    assert "after execution 1: variables are kept." in result.text
    assert result.text.endswith("499500 42 2 False kept\n")
    assert result.execution["generation"] == 1
    assert result.execution["execution_count"] == 2


def test_a_client_that_does_not_wait_for_the_old_server_finds_its_variables(images, start):
    names, seconds, asked = itertools.count(), [], []

    def work():
        name = f"work{next(names)}"
        first = start("--session", name)
        run(first, "x = bytes(200_000_000)")
        seconds.append(start("--session", name))
        return first, None

    def end(first):
        call = {"name": "run_python", "arguments": {"code": "len(x)"}}
        first.process.stdin.close()
        asked.append(seconds[-1].start("tools/call", call))
        return first.process.wait(20)

    put_on_disk(work, end)
    result = ToolResult(seconds[-1].wait_for(asked[-1]), 0)
    assert result.text.endswith("variables are kept.]\n200000000")


def test_an_unnamed_session_is_found_by_its_handle(images, start):
    handle = session_on_disk(start, "x = 5")
    second = start()
    assert "NameError" in run(second, "x").text
    assert run(second, "x", session=handle).text.endswith("variables are kept.]\n5")


def test_sigterm_is_as_good_as_the_end_of_the_input(images, start):
    def work():
        client = start()
        return client, handle_of(run(client, "x = 5"))

    def end(client):
        client.process.send_signal(signal.SIGTERM)
        return client.process.wait(20)

    assert run(start(), "x", session=put_on_disk(work, end)).text.endswith("\n5")


def test_a_kernel_without_use_sleeps_and_wakes(images, start):
    client = start("--idle-timeout", "1")
    run(client, "x = 5")
    until(lambda: "on disk, variables kept" in client.call_tool("list_sessions").text)
    assert "variables are kept.]\n5" in run(client, "x").text
    assert run(client, "x + 1").text == "6"


PRINTS_LATER = """
import threading, time
def tell():
    while not __import__("os").path.exists("go"): time.sleep(0.01)
    print("from a thread")
    open("told", "w").close()
threading.Thread(target=tell).start(); x = 5
"""


def test_what_was_printed_in_the_background_is_shown_after_the_wake(images, start, environment):
    def work():
        client = start()
        handle = handle_of(run(client, PRINTS_LATER))
        client.call_tool("upload_file", {"name": "go", "text": "now that the cell has ended"})
        workspace = pathlib.Path(environment["PYKEEP_STATE_DIR"]) / "sessions" / handle / "workspace"
        until((workspace / "told").exists)
        time.sleep(0.3)  # until the server has read it
        return client, handle

    handle = put_on_disk(work)
    second = start()
    text = run(second, "x", session=handle).text
    assert re.search(r"(?s)output from the background.*from a thread\n.*\n5$", text), text
    assert run(second, "x", session=handle).text == "5"


def test_what_an_image_cannot_have_is_said_with_the_first_result(images, start):
    handle = session_on_disk(start, "import subprocess; p = subprocess.Popen(['sleep', '1000']); x = 5")
    text = run(start(), "x", session=handle).text
    assert re.search(r"variables are kept. Not carried over: process \d+ \(sleep\)\.\]\n5$", text), text


@pytest.mark.parametrize(
    "end", ["import os; os.kill(os.getpid(), 11)", "bytearray(1 << 40); x = b'1' * (3 << 30)"]
)
def test_after_a_crash_the_session_goes_back_to_its_checkpoint(images, start, end):
    client = start("--checkpoint-cells", "3", "--memory", "1GiB")
    for number in range(1, 5):
        run(client, f"x = {number}")
    end = end.replace("bytearray(1 << 40); ", "")
    died = run(client, end)
    if "the kernel died" not in died.text:  # Python noticed before the kernel did
        died = run(client, "import os; os.kill(os.getpid(), 9)")
    lost = re.search(r"checkpoint after execution 3: (executions 4 to \d are lost)", died.text)
    assert lost, died.text
    result = run(client, "x")
    assert lost[1] in result.text
    assert "files in /workspace are not rewound" in result.text
    assert result.text.endswith("\n3")


def test_a_server_that_is_killed_never_passes_off_an_old_state_as_the_last(images, start):
    first = start("--checkpoint-cells", "1")
    handle = handle_of(run(first, "x = 1"))
    run(first, "x = 2")  # waits for the checkpoint after the first; there may be one after this
    first.process.kill()
    first.process.wait(20)
    text = run(start(), "x", session=handle).text
    restored = re.search(r"restored to its state after execution (\d).*executions after \1 are lost", text)
    assert restored, text
    assert text.endswith("\n" + restored[1])


def test_a_damaged_image_is_refused_with_the_reason(images, start, environment, tmp_path):
    handle = session_on_disk(start, "x = 5")
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
