"""Large outputs are cut in the middle, counted, and kept whole in a file. (peers 3.7)"""

import json
import re

from conftest import at_leisure, best_of_three


def test_22_million_characters(run):  # (a)
    results = []

    def seconds():
        results.append(run('print("x" * 22_000_000)'))
        return results[-1].seconds

    best_of_three(at_leisure(5), seconds)
    result = results[-1]
    assert len(result.text) <= 32 * 1024
    whole = re.search(r"all of it: 22,000,001 bytes in (/workspace/\S+) \((pykeep://\S+)\)", result.text)
    assert run(f"import os; os.path.getsize('{whole[1]}')").text == "22000001"
    left_out = int(re.search(r"\[\.\.\. ([\d,]+) bytes", result.text)[1].replace(",", ""))
    assert left_out + result.text.count("x") >= 22_000_000


def test_a_deep_recursion_keeps_both_ends_and_the_message(run):  # (b)
    text = run(
        "import sys; sys.setrecursionlimit(5000)\n"
        "def ping(n): return pong(n)\ndef pong(n): return ping(n + 1)\nping(0)"
    ).text
    assert len(text) < 20_000 and "more calls ...]" in text
    assert text.index("line 4") < text.index("more calls") < text.rindex("in ping")
    assert "RecursionError: maximum recursion depth exceeded" in text.rstrip().splitlines()[-1]


def test_1000_displays(run):  # (c)
    result = run("for i in range(1000): display(i)")
    shown = [line for line in result.text.splitlines() if line.isdigit()]
    assert shown[0] == "0" and 50 <= len(shown) < 1000
    assert f"[... {1000 - len(shown)} displays left out ...]" in result.text


def test_the_end_of_a_traceback_survives_a_flood(run):
    result = run("for i in range(100_000): print('line', i)\n1/0")
    assert result.text.startswith("line 0\nline 1\n")
    assert result.text.rstrip().endswith("ZeroDivisionError: division by zero")
    assert re.search(r"\[\.\.\. [\d,]+ bytes, [\d,]+ lines left out; all of it: ", result.text)
    assert len(json.dumps(result.raw)) < 100_000


def test_a_value_with_a_huge_repr(run):
    result = run("'y' * 10_000_000")
    assert len(result.text) < 30_000 and "left out" in result.text


def test_a_line_without_end(run):
    result = run("import sys\nfor _ in range(1000): _ = sys.stdout.write('z' * 10_000)")
    assert len(result.text) < 30_000 and "10,000,000 bytes" in result.text
