"""A kernel that is warmed up for an image, and one that is told that it was thawed."""

import client
import pytest


def resume(kernel, reason, **environment):
    kernel.send({"op": "resumed", "reason": reason, "environment": environment})
    answer = kernel.wait_for_frame()
    assert answer["ev"] == "ready", answer


@pytest.fixture(scope="module")
def shared():
    kernel = client.Kernel(command=[client.PYTHON, "-I", str(client.KERNEL), "--warm"])
    yield kernel
    kernel.close()


@pytest.mark.own_link
def test_nothing_of_the_warming_shows(kernel):
    first = kernel.run("_, __, Out, len(In), [name for name in dir() if not name.startswith('_')]")
    assert first.started["execution_count"] == 1
    names = ["In", "Out", "exit", "get_ipython", "open", "quit"]
    known = [name for name in names if name in first.result]
    assert first.result.startswith("('', '', {}, 2, ["), first.result
    assert first.result.count("'") == 4 + 2 * len(known), first.result
    assert kernel.run("import sys, linecache; hasattr(sys, 'last_value')").result == "False"


@pytest.mark.own_link
def test_an_idle_kernel_holds_nothing_that_cannot_be_frozen(kernel):
    listing = kernel.run(
        "import os, threading\n"
        "[(fd, link.split(':')[0]) for fd in range(64) if os.path.exists(f'/proc/self/fd/{fd}')"
        " for link in [os.readlink(f'/proc/self/fd/{fd}')] if not os.path.isfile(link)],"
        " threading.active_count()"
    )
    expected = [(0, "/dev/null"), (1, "pipe"), (2, "pipe"), (3, "socket"), (4, "pipe"), (5, "pipe")]
    assert eval(listing.result) == (expected, 1)


@pytest.mark.parametrize(
    "reason, same", [("template", False), ("fork", False), ("snapshot", True), ("wake", True)]
)
def test_random_state_is_drawn_anew_for_twins_only(kernel, reason, same):
    kernel.run("import random; state = random.getstate()")
    resume(kernel, reason)
    assert kernel.run("random.getstate() == state").result == str(same)


@pytest.mark.needs("numpy")
def test_numpy_is_reseeded(kernel):
    kernel.run("import numpy as np; np.random.seed(1); before = np.random.get_state()[1].tolist()")
    resume(kernel, "snapshot")
    assert kernel.run("np.random.get_state()[1].tolist() == before").result == "True"
    resume(kernel, "fork")
    assert kernel.run("np.random.get_state()[1].tolist() == before").result == "False"


def test_names_and_keys_are_not_shared(kernel):
    code = (
        "import multiprocessing, tempfile\n"
        "tempfile._get_candidate_names()\n"
        "key = bytes(multiprocessing.current_process().authkey); names = tempfile._name_sequence"
    )
    kernel.run(code)
    resume(kernel, "template")
    check = "multiprocessing.current_process().authkey != key, tempfile._name_sequence is not names"
    assert kernel.run(check).result == "(True, True)"


def test_environment_and_working_directory(kernel):
    kernel.run("import os, tempfile; os.environ['KEPT'] = '1'; os.chdir(tempfile.mkdtemp(dir='/tmp'))")
    resume(kernel, "snapshot", GIVEN="é", KEPT="1")
    assert kernel.run("os.environ['GIVEN'], os.getcwd().startswith('/tmp/tmp')").result == "('é', True)"
    kernel.run("os.rmdir(os.getcwd())")
    resume(kernel, "wake")
    assert kernel.run("os.getcwd()").result == repr(str(kernel.workspace))
    kernel.run("os.chdir('/')")
    resume(kernel, "template")
    assert kernel.run("os.getcwd()").result == repr(str(kernel.workspace))


def test_directories_of_the_home_are_back(kernel):
    kernel.run("import shutil, os; shutil.rmtree(os.environ['HOME']); os.mkdir(os.environ['HOME'])")
    resume(kernel, "template")
    assert kernel.run("os.path.isdir(get_ipython().profile_dir.location)").result == "True"


def test_output_arrives_after_it(kernel):
    resume(kernel, "wake")
    result = kernel.run("import os\nprint('a')\nos.system('echo b')\ndisplay(1)\nprint('c')")
    assert result.out == "a\nb\nc\n"
    assert kernel.run("import os; os.close(1)").error is None
    assert kernel.run("print('back')").out == "back\n"
