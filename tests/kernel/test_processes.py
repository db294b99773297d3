"""Child processes: forked, spawned, and what they must not do."""

import pytest

DEFINE = "import multiprocessing as mp\nfrom multiprocessing import Pool\nOFFSET = 1\ndef f(x): return x * x\ndef g(x): return x + OFFSET\n"


def test_fork_pool(kernel):
    code = DEFINE + "with mp.get_context('fork').Pool(2) as p: r = p.map(f, range(4))\nr"
    assert kernel.run(code).result == "[0, 1, 4, 9]"


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_pools_find_the_cells_functions(kernel, method):
    kernel.run(DEFINE + "print('only once')")
    code = f"with mp.get_context('{method}').Pool(2) as p: r = p.map(f, range(4)), p.map(g, range(2))\nr"
    result = kernel.run(code)
    assert result.result == "([0, 1, 4, 9], [1, 2])"
    assert result.out == ""  # the cells are not run again


@pytest.mark.parametrize(
    "define, message",
    [
        ("exec('def h(x): return 1')", "h does not exist in this spawned process"),
        ("import random; state = random.Random(1)\ndef h(x): return state", "state"),
    ],
)
def test_a_spawned_worker_that_lacks_something_raises_and_does_not_hang(kernel, define, message):
    kernel.run("import multiprocessing as mp")
    kernel.run(define)
    code = "with mp.get_context('spawn').Pool(2) as p: p.map(h, range(2))"
    assert message in kernel.run(code).traceback


def test_executor(kernel):
    kernel.run(DEFINE)
    code = (
        "from concurrent.futures import ProcessPoolExecutor\n"
        "with ProcessPoolExecutor(2) as p: r = list(p.map(f, range(4)))\nr"
    )
    assert kernel.run(code).result == "[0, 1, 4, 9]"


def test_a_forked_child_cannot_speak_for_the_kernel(kernel):
    result = kernel.run(
        "import os\npid = os.fork()\n"
        "if pid == 0:\n    display('from the child')\n    print('child')\n"
        "else:\n    os.waitpid(pid, 0)\n    print('parent')\n"
        "pid > 0"
    )
    assert result.out == "child\nparent\n"
    assert [frame["data"]["text/plain"] for frame in result.displays] == ["True"]


def test_a_forked_child_that_fails(kernel):
    result = kernel.run("import os\npid = os.fork()\nif pid == 0: 1/0\nos.waitpid(pid, 0)[1]")
    assert result.result == "0"
    assert "ZeroDivisionError" in result.err and result.error is None


def test_text_is_not_written_twice_by_a_fork(kernel):
    code = "import os\nfor i in range(500): print(i)\nif os.fork() == 0: os._exit(0)\nos.wait();"
    assert kernel.run(code).out.count("499\n") == 1
