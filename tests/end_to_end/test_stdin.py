"""input(): given, asked, or refused at once; never waited for in vain. (peers 3.12)"""

import pytest
from conftest import best_of_three

NOBODY = (
    "StdinNotAvailable: {} needs input, and there is no one to ask. "
    "Pass the whole text in the `stdin` argument of run_python, one line an answer."
)


@pytest.mark.parametrize(
    "code, what",
    [
        ('input("name? ")', "input()"),  # (a)
        ('import getpass; getpass.getpass("key? ")', "getpass()"),
    ],
)
def test_refused_at_once(run, code, what):
    def seconds():
        result = run(code)
        assert result.is_error
        assert result.text.rstrip().endswith("\n" + NOBODY.format(what))
        return result.seconds

    best_of_three(0.1, lambda: min(seconds() for _ in range(10)))


@pytest.mark.parametrize(
    "code, stdin, expected",
    [
        ('input("name? ")', "Ada\n", "name? \n'Ada'"),  # (b)
        ("input(), input()", "a\nb", "('a', 'b')"),
        ("import sys; sys.stdin.read()", None, "''"),  # (c)
        ("sys.stdin.read()", "x\ny\n", r"'x\ny\n'"),
        ("[line for line in sys.stdin]", "x\ny\n", r"['x\n', 'y\n']"),
        ("sys.stdin.readline()", "é🙂\n", r"'é🙂\n'"),
        ("import getpass; getpass.getpass()", "secret\n", "'secret'"),
    ],
)
def test_given(run, code, stdin, expected):
    assert run(code, **({"stdin": stdin} if stdin is not None else {})).text == expected


def test_used_up(run):
    assert "the given stdin text is used up" in run("input(); input()", stdin="one\n").text


def test_the_debugger_ends_with_its_commands(run):
    run("def f(x):\n    return 1 / x")
    run("f(0)")
    text = run("%debug", stdin="p x + 41\nq\n").text
    assert "41" in text
    best_of_three(2, lambda: run("%debug").seconds)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_asked(start, era):
    questions = []

    def answer(params):
        questions.append(params["message"])
        return {"action": "accept", "content": {"value": "Grace"}}

    client = start(era=era, answer=answer)
    result = client.call_tool("run_python", {"code": "f\"hello {input('name? ')}\""})
    assert result.text.endswith("name? Grace\n'hello Grace'")
    assert len(questions) == 1 and "name? " in questions[0]


def test_asked_and_declined(start):
    client = start(answer=lambda params: {"action": "decline"})
    result = client.call_tool("run_python", {"code": "input()"})
    assert result.is_error and "the user gave no answer" in result.text
