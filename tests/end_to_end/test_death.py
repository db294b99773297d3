"""How a kernel ends, and what the next call is told. (peers 3.14)"""

import pytest
from conftest import until

NEW = "[A new kernel was started: the last one died: {}. Variables from before are gone; files in /workspace are kept.]\n"


@pytest.mark.parametrize(
    "code, cause",
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV (segmentation fault)"),  # (a)
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV (segmentation fault)"),
        ("import os; os.abort()", "SIGABRT (aborted)"),
        ("import os; os.killpg(0, 15)", "SIGTERM (terminated)"),  # (b)
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL"),
        ("import os; os._exit(0)", "exit code 0 (os._exit, or C code that called exit)"),  # (c)
    ],
)
def test_death_is_reported_and_the_next_call_is_told(fresh, run, code, cause):
    fresh("x = 1; open('kept', 'w').close()")
    result = fresh("print('last words')\n" + code)
    assert result.is_error and result.text.startswith("last words\n")
    assert f"[the kernel died: {cause}. Variables are lost; files in /workspace are kept" in result.text
    after = fresh("import os; 'x' in globals(), os.path.exists('kept')")
    assert after.text == NEW.format(cause) + "(False, True)"
    assert fresh("1").text == "1"
    assert run("1 + 1").text == "2"


def test_a_crash_names_the_line_and_little_else(fresh):
    fresh("import ctypes\ndef crash():\n    ctypes.string_at(0)")
    text = fresh("crash()").text
    assert "Fatal Python error: Segmentation fault" in text
    assert "line 3 in crash\n" in text and "line 1 in <module>\n" in text
    assert "Cell In[" in text and "pykeep_kernel" not in text and "Extension modules" not in text


@pytest.mark.parametrize("code", ["exit()", "quit()", "exit", "import sys; sys.exit(0)", "raise SystemExit"])
def test_an_orderly_exit_ends_the_cell_only(run, code):
    run("x = 41")
    result = run(code)
    assert not result.is_error or code == "exit"
    assert run("x + 1").text == "42"


def test_an_exit_with_a_status_is_an_error_and_keeps_variables(run):
    run("x = 41")
    result = run("import sys; sys.exit(3)")
    assert result.is_error
    assert result.text == "SystemExit: 3 (the session goes on and its variables are kept)\n"
    assert run("x + 1").text == "42"


def test_a_kernel_that_dies_between_two_cells(fresh):
    fresh("import threading, os\nthreading.Timer(0.3, os._exit, [7]).start()")
    listed = fresh.client.call_tool
    until(lambda: f"{fresh.session}: no kernel" in listed("list_sessions").text)
    text = fresh("1").text
    assert text.startswith("[A new kernel was started: the last one ") and text.endswith("\n1")
