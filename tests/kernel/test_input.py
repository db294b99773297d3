"""input(), getpass() and sys.stdin: from the `stdin` argument, else from the user, else an error."""

import pytest


def test_without_anyone_to_ask_it_fails_at_once(kernel):
    result = kernel.run('input("name? ")')
    assert result.error["name"] == "StdinNotAvailable"
    assert "`stdin` argument of run_python" in result.error["value"]
    assert result.seconds < 10


def test_from_the_stdin_argument(kernel):
    assert kernel.run('input("name? ")', stdin="Ada\n").result == "'Ada'"
    result = kernel.run("a = input(); b = input(); a + b", stdin="1\n2")
    assert result.result == "'12'"


def test_more_input_than_was_given(kernel):
    result = kernel.run("input(); input()", stdin="one\n")
    assert "used up" in result.error["value"]
    code = "lines = []\ntry:\n    while True: lines.append(input())\nexcept EOFError: pass\nlines"
    assert kernel.run(code, stdin="1\n2\n").result == "['1', '2']"


def test_sys_stdin(kernel):
    assert kernel.run("import sys; sys.stdin.read()").result == "''"
    assert kernel.run("import sys; sys.stdin.read()", stdin="a\nb").result == "'a\\nb'"
    assert kernel.run("import sys; list(sys.stdin)", stdin="a\nb").result == "['a\\n', 'b']"
    assert kernel.run("import sys; sys.stdin.buffer.read()", stdin="é").result == "b'\\xc3\\xa9'"
    assert kernel.run("import sys; sys.stdin.read()").result == "''"


def test_asking_the_user(kernel):
    result = kernel.run('x = input("name? "); x.upper()', can_ask=True, answers=["Ada"])
    assert [(r["prompt"], r["password"]) for r in result.requests] == [("name? ", False)]
    assert result.result == "'ADA'"
    assert result.out == "name? Ada\n"


def test_text_comes_before_the_question(kernel):
    kinds = []
    result = kernel.run(
        'print("first"); input("then? ")',
        can_ask=True,
        answers=["ok"],
        on_frame=lambda frame: kinds.append(frame["ev"]),
    )
    assert kinds[:2] == ["started", "input_request"]
    assert result.out.startswith("first\n")


def test_passwords_are_not_echoed(kernel):
    result = kernel.run("import getpass; len(getpass.getpass('key: '))", can_ask=True, answers=["secret"])
    assert result.requests[0]["password"] is True
    assert result.result == "6" and "secret" not in result.out


def test_no_answer(kernel):
    result = kernel.run("input()", can_ask=True, answers=[None])
    assert "the user gave no answer" in result.error["value"]


@pytest.mark.parametrize("code", ["breakpoint()", "import pdb; pdb.set_trace()\nx = 1", "%debug"])
def test_debuggers_do_not_hang(kernel, code):
    kernel.run("1/0")
    assert kernel.run(code).seconds < 30
    assert kernel.run("1+1").result == "2"


def test_a_debugger_takes_its_commands_from_stdin(kernel):
    kernel.run("def f():\n    local = 12345\n    1/0\nf()")
    assert "12345" in kernel.run("%debug", stdin="p local\nq\n").out


def test_threads_cannot_ask(kernel):
    code = (
        "import threading\ngot = []\n"
        "def ask():\n    try: input()\n    except EOFError as e: got.append(str(e))\n"
        "t = threading.Thread(target=ask); t.start(); t.join(); got[0]"
    )
    assert "main thread" in kernel.run(code, can_ask=True).result
