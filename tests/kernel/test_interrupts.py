"""SIGINT: ends what the cell does, keeps the session, never tears a frame."""

import threading
import time

import pytest

BEGUN = "open('begun', 'w').close()\n"  # an interrupt that comes before the cell means nothing


def interrupted(kernel, code, delay=0.4, times=1):
    """Runs `code`; each time it says that it has begun, it is interrupted so long after."""
    begun = kernel.workspace / "begun"
    ended = threading.Event()

    def send():
        for _ in range(times):
            while not begun.exists():
                if ended.wait(0.005):
                    return
            begun.unlink()
            time.sleep(delay)
            kernel.interrupt()

    thread = threading.Thread(target=send)
    thread.start()
    try:
        return kernel.run(code, timeout=45)
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize(
    "code",
    [
        BEGUN + "while True: pass",
        BEGUN + "import time; time.sleep(60)",
        BEGUN + "import asyncio; await asyncio.sleep(60)",
        BEGUN + "import asyncio; asyncio.run(asyncio.sleep(60))",
        BEGUN + "import os; os.system('sleep 60')",
        BEGUN + "import subprocess; subprocess.run(['sleep', '60'])",
        BEGUN + "!sleep 60",
        "%%bash\ntouch begun; sleep 60",
        BEGUN + "import threading; threading.Event().wait()",
    ],
)
def test_ends_a_cell(kernel, code):
    kernel.run("kept = 1")
    result = interrupted(kernel, code)
    assert result.error["name"] == "KeyboardInterrupt"
    assert result.error["traceback"][-1] == "KeyboardInterrupt"
    assert len(result.error["traceback"]) < 10
    assert result.seconds < 20
    assert kernel.run("kept").result == "1"


@pytest.mark.parametrize("code", ["print(i)", "display(i)"])
def test_never_tears_a_frame(kernel, code):
    for delay in (0.05, 0.11, 0.17):
        result = interrupted(kernel, f"{BEGUN}import itertools\nfor i in itertools.count(): {code}", delay)
        assert result.error["name"] == "KeyboardInterrupt"
    assert kernel.run("1+1").result == "2"


def test_again_when_the_first_one_was_swallowed(kernel):
    code = (
        f"import time\nfor attempt in range(2):\n    try:\n        {BEGUN}        time.sleep(60)\n"
        f"    except BaseException: print('swallowed')\n{BEGUN}time.sleep(60)"
    )
    result = interrupted(kernel, code, times=3)
    assert result.out == "swallowed\n" * 2
    assert result.error["name"] == "KeyboardInterrupt"


def test_means_nothing_between_cells(kernel):
    for _ in range(5):
        kernel.interrupt()
        time.sleep(0.02)
    assert kernel.run("1+1").result == "2"


def test_while_a_question_waits(kernel):
    cell = kernel.start("input('? ')", can_ask=True)
    while kernel.wait_for_frame()["ev"] != "input_request":
        pass
    kernel.interrupt()
    kernel.send({"op": "reply", "id": cell, "value": "late"})
    result = kernel.finish(cell)
    assert result.error["name"] == "KeyboardInterrupt"
    assert kernel.run("input('? ')", can_ask=True, answers=["now"]).result == "'now'"


def test_an_interrupted_await_leaves_nothing_behind(kernel):
    code = f"import asyncio\ntry:\n    {BEGUN}    await asyncio.sleep(60)\nfinally:\n    print('cleaned up')"
    assert interrupted(kernel, code).out == "cleaned up\n"
    assert kernel.run("len(asyncio.all_tasks(asyncio.get_event_loop()))").result == "0"


def test_a_handler_of_the_last_cell_is_gone(kernel):
    kernel.run("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)")
    assert interrupted(kernel, BEGUN + "while True: pass").error["name"] == "KeyboardInterrupt"
