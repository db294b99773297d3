"""Tracebacks: the cell's own lines, nothing of ours, bounded; the session goes on."""

import pytest


def test_lines_are_the_cells(kernel):
    kernel.run("def broken():\n    y = 1\n    return y / 0")
    number = kernel.run("1").done["execution_count"]
    result = kernel.run("x = 1\n\nbroken()")
    assert result.done["status"] == "error"
    assert result.error["name"] == "ZeroDivisionError"
    assert result.error["value"] == "division by zero"
    lines = result.error["traceback"]
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == f"  Cell In[{number + 1}], line 3"
    assert lines[2] == "    broken()"
    assert f"  Cell In[{number - 1}], line 3, in broken" in lines
    assert lines[-1] == "ZeroDivisionError: division by zero"


def test_no_frames_of_ours_and_no_colours(kernel):
    for code in ("1/0", "await nothing", "%%time\n1/0", "%run missing.py", "import missing_module"):
        text = kernel.run(code).traceback
        assert text and "pykeep_kernel" not in text and "IPython" not in text
        assert "\x1b" not in text


def test_frames_of_libraries_are_shown(kernel):
    text = kernel.run("import json\njson.loads('{bad')").traceback
    assert "json/decoder.py" in text and "JSONDecodeError" in text


def test_output_before_the_error_is_kept(kernel):
    result = kernel.run("print('before')\ndisplay(1)\n1/0")
    assert result.kinds == ["out", "display", "error"]


def test_syntax_errors_point_at_the_place(kernel):
    result = kernel.run("x = 1\n\ndef f(:\n    pass")
    assert result.error["name"] == "SyntaxError"
    assert "line 3" in result.traceback and "def f(:" in result.traceback and "^" in result.traceback
    assert kernel.run("  x = 1\n y = 2").error["name"] == "IndentationError"


def test_causes_and_contexts(kernel):
    text = kernel.run("try:\n    1/0\nexcept Exception as e:\n    raise KeyError('k') from e").traceback
    assert text.index("ZeroDivisionError") < text.index("direct cause") < text.index("KeyError: 'k'")


@pytest.mark.parametrize("depth", [1_000, 6_000])
def test_deep_recursion_keeps_both_ends(kernel, depth):
    result = kernel.run(
        f"import sys; sys.setrecursionlimit({depth})\n"
        "def ping(n): return pong(n)\ndef pong(n): return ping(n + 1)\nping(0)"
    )
    assert result.error["name"] == "RecursionError"
    assert result.error["traceback"][-1].startswith("RecursionError: maximum recursion depth")
    assert "line 4" in result.error["traceback"][1]
    assert "more calls" in result.traceback
    assert len(result.traceback) < 16_500


def test_a_long_message_is_cut_in_the_middle(kernel):
    result = kernel.run("raise ValueError('a' * 1_000_000 + 'end')")
    assert len(result.traceback) < 16_500 and result.traceback.endswith("end")


def test_exceptions_that_cannot_be_printed(kernel):
    result = kernel.run("class Odd(Exception):\n    def __str__(self): raise ValueError('no')\nraise Odd()")
    assert result.error["name"] == "Odd" and "Odd" in result.traceback
    assert kernel.run("raise ValueError('\\ud800')").error["value"] == "\ufffd"


@pytest.mark.parametrize(
    "code, failed",
    [
        ("exit()", False),
        ("quit()", False),
        ("exit", False),
        ("import sys; sys.exit()", False),
        ("raise SystemExit", False),
        ("import sys; sys.exit(3)", True),
        ("exit(3)", True),
        ("import sys; sys.exit('usage: x')", True),
    ],
)
def test_exit_ends_the_cell_and_not_the_session(kernel, code, failed):
    kernel.run("kept = 1")
    result = kernel.run(f"{code}\nkept = 2" if "exit" != code else code)
    assert result.done["status"] == ("error" if failed else "ok")
    said = result.traceback if failed else result.err
    assert "variables are kept" in said
    assert kernel.run("kept").result == "1"


def test_memory_error(kernel):
    assert kernel.run("x = bytearray(10**14)").error["name"] == "MemoryError"


def test_wrong_magic(kernel):
    result = kernel.run("%no_such_magic")
    assert "no_such_magic" in result.traceback + result.err
    assert "IPython/" not in result.traceback


def test_warnings_name_the_cell(kernel):
    number = kernel.run("1").done["execution_count"] + 1
    assert (
        f"Cell In[{number}]:1: UserWarning: careful"
        in kernel.run("import warnings; warnings.warn('careful')").err
    )


def test_notes_and_groups(kernel):
    if tuple(map(int, kernel.ready["python"].split("."))) < (3, 11):
        pytest.skip("new in Python 3.11")
    text = kernel.run(
        "group = ExceptionGroup('several', [ValueError(1), TypeError(2)])\n"
        "group.add_note('a note')\nraise group"
    ).traceback
    for part in ("ExceptionGroup: several", "ValueError: 1", "TypeError: 2", "a note"):
        assert part in text


def test_source_can_be_inspected(kernel):
    code = "def square(x): return x * x\nimport inspect; print(inspect.getsource(square))"
    assert kernel.run(code).out.startswith("def square(x): return x * x")


def test_paths_of_packages_are_short(kernel):
    text = kernel.run("from IPython import nope").traceback
    assert "(.../site-packages/IPython/__init__.py)" in text or "(.../dist-packages/IPython" in text


def test_warnings_and_threads_name_the_cell(kernel):
    number = kernel.run("import warnings; warnings.warn('old')").done["execution_count"]
    result = kernel.run(
        "import threading\nthread = threading.Thread(target=lambda: 1 / 0, name='worker')\n"
        "thread.start(); thread.join()"
    )
    assert "Exception in worker:\nTraceback" in result.err
    assert f"Cell In[{number + 1}], line 2, in <lambda>" in result.err
    assert kernel.run("warnings.warn('old')").err.startswith(f"Cell In[{number + 2}]:1: UserWarning: old")


def test_a_failing_script_is_not_repeated(kernel):
    text = kernel.run("%%bash\necho a\nexit 3").traceback
    assert "    %%bash\n" in text and "exit status 3" in text and "echo a" not in text


def test_a_memory_error_lets_go_of_what_its_frames_held(kernel):
    kernel.run("class Big(bytearray):\n    def __del__(self): print('freed')")
    result = kernel.run("def grow():\n    big = Big(10)\n    raise MemoryError\ngrow()")
    assert result.error["name"] == "MemoryError" and result.out == "freed\n"
