"""Event loops, threads and other processes of Python. (peers 3.11)"""

import pytest
from conftest import until

SQUARES = "from multiprocessing import Pool, get_context\ndef f(x): return x * x\n"


@pytest.mark.parametrize(
    "code, expected",
    [
        ("import asyncio; asyncio.run(asyncio.sleep(0.1)) or 1", "1"),  # (a)
        ("asyncio.run(asyncio.sleep(0.01, 'again'))", "'again'"),
        ("await asyncio.gather(asyncio.sleep(0.01, 1), asyncio.sleep(0, 2))", "[1, 2]"),  # (b)
        (
            "async with asyncio.timeout(1) if hasattr(asyncio, 'timeout') else asyncio.Lock(): print('in')",
            "in\n",
        ),
        ("asyncio.run(asyncio.sleep(0, 3))", "3"),  # also after a top-level await
        (SQUARES + "with Pool(2) as p: r = p.map(f, range(4))\nr", "[0, 1, 4, 9]"),  # (c)
        ("with get_context('spawn').Pool(2) as p: r = p.map(f, range(4))\nr", "[0, 1, 4, 9]"),
        ("with get_context('forkserver').Pool(2) as p: r = p.map(f, range(4))\nr", "[0, 1, 4, 9]"),
        (
            "from concurrent.futures import ProcessPoolExecutor as P\nwith P(2) as p: r = list(p.map(f, range(3)))\nr",
            "[0, 1, 4]",
        ),
        (
            "from concurrent.futures import ThreadPoolExecutor as T\nwith T(4) as p: r = list(p.map(f, range(3)))\nr",
            "[0, 1, 4]",
        ),
        ("import os\npid = os.fork()\nif pid == 0: raise SystemExit\nos.waitpid(pid, 0)[1]", "0"),
    ],
)
def test_it_just_works(run, code, expected):
    assert run(code).text == expected
    assert run("1 + 1").text == "2"


def test_a_task_goes_on_in_later_cells(run):
    run(
        "import asyncio\nasync def tell():\n    await asyncio.sleep(0.05); print('told')\nt = asyncio.ensure_future(tell())\nawait asyncio.sleep(0)"
    )
    assert "told" in run("await asyncio.sleep(0.2)").text


def test_output_of_a_thread_that_outlives_its_cell(run):  # (d)
    run(
        "import os, threading, time\ndef tick():\n    while not os.path.exists('go'): time.sleep(0.01)\n"
        "    for i in range(4): time.sleep(0.05); print('tick', i)\n    open('ticked', 'w').close()\n"
        "threading.Thread(target=tick).start()"
    )
    run.tool("upload_file", name="go", text="now that the cell has ended")
    until(lambda: "ticked" in run.tool("list_files").text)
    assert run("'now'").text == (
        "[output from the background, since the last execution]\n"
        "tick 0\ntick 1\ntick 2\ntick 3\n"
        "[end of the output from the background]\n'now'"
    )
    assert run("1").text == "1"


def test_a_forked_child_that_goes_on_cannot_answer_for_the_kernel(run):
    """The child runs the rest of its cell as well, and then ends."""
    result = run("import os, time\nchild = os.fork()\nif child == 0: time.sleep(0.2)\nprint('hello'); 5")
    assert result.execution["status"] == "ok" and result.text.rstrip().endswith("5")
    run("_ = os.waitpid(child, 0)")
    assert run("1 + 1").text.endswith("2")


def test_an_error_in_a_thread_is_shown_with_its_cell(run):
    text = run("t = threading.Thread(target=lambda: 1 / 0, name='worker'); t.start(); t.join()").text
    assert "Exception in worker:" in text and ", line 1, in <lambda>" in text and "Cell In[" in text
