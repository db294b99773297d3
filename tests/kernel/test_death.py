"""What ends a kernel, and what the server then sees; and what does not end it."""

import client
import pytest


def died(kernel, code):
    with pytest.raises(client.KernelDied) as death:
        kernel.run(code)
    code, pieces = death.value.args
    return code, b"".join(data for _, data in pieces).decode()


def test_a_crash_leaves_faulthandlers_text(fresh):
    code, text = died(fresh, "print('last words')\nimport os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert code == -11
    assert "last words" in text and "Fatal Python error: Segmentation fault" in text


def test_os_exit(fresh):
    assert died(fresh, "import os; os._exit(4)")[0] == 4


def test_a_cell_that_takes_the_link(fresh):
    code, text = died(fresh, "import os; os.close(3); f = open('mine', 'w')")
    assert code == 70 and "descriptor 3" in text
    assert (fresh.workspace / "mine").read_text() == ""


@pytest.mark.parametrize(
    "code",
    [
        "del __builtins__.len",
        "import builtins; del builtins.print, builtins.range",
        "import json; json.dumps = json.loads = None",
        "import time; time.sleep = time.monotonic = lambda *a: 0",
        "import sys; sys.modules['pandas'] = 5; sys.modules['plotly.io'] = None",
        "import os; os.makedirs('gone', exist_ok=True); os.chdir('gone'); os.rmdir('../gone')",
        "import locale; locale.setlocale(locale.LC_ALL, 'C')",
        "import sys; sys.stdin.close(); sys.stdin = None",
        "import sys; sys.displayhook = None; sys.excepthook = None",
        "import gc; gc.disable(); import sys; sys.setrecursionlimit(120)",
        "import threading; threading.current_thread().name = 5",
        "%reset -f",
        "import sys; sys.path[:] = []",
    ],
)
def test_goes_on_after_vandalism(fresh, code):
    fresh.run(code)
    assert fresh.run("1 + 1").result == "2"
    assert fresh.run("1 / 0").error["name"] == "ZeroDivisionError"
    assert fresh.run("input()", stdin="x").result == "'x'"
