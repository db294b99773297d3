"""Shell commands, magics and %pip."""

import zipfile

import pytest


def test_exclamation_mark(kernel):
    result = kernel.run("!echo out; echo err >&2; exit 3")
    assert (result.out, result.err) == ("out\n", "err\n(exit code 3)\n")
    assert kernel.run("files = !echo a b; files").done["status"] in ("ok", "error")
    assert kernel.run("word = 'x'\n!echo {word} $word").out == "x x\n"


def test_bash_as_the_very_first_cell(fresh):
    result = fresh.run("%%bash\necho one\ncd /\npwd\necho two >&2")
    assert (result.out, result.err) == ("one\n/\n", "two\n")


def test_a_failing_script_is_an_error(kernel):
    result = kernel.run("%%bash\necho before\nexit 3")
    assert result.out == "before\n"
    assert result.error["name"] == "CalledProcessError" and "3" in result.error["value"]


def test_os_system(kernel):
    result = kernel.run('import os; os.system("echo child; echo err >&2; exit 3")')
    assert (result.out, result.err, result.result) == ("child\n", "err\n", "768")


def test_children_do_not_get_the_link(kernel):
    result = kernel.run("!ls -l /proc/self/fd | grep -c socket")
    assert result.out == "0\n"


def test_magics(kernel):
    assert "Wall time" in kernel.run("%%time\n1").out
    assert "per loop" in kernel.run("%timeit -n1 -r1 1").out
    kernel.run("%%writefile written.py\nz = 8")
    assert kernel.run("%run written.py\nz").result == "8"
    assert kernel.run("%%capture c\nprint('x')").out == ""
    assert kernel.run("c.stdout").result == "'x\\n'"
    assert "Print" in kernel.run("print?").out
    for quiet in ("%matplotlib inline", "%config InlineBackend.figure_format = 'retina'", "%gui"):
        if "matplotlib" not in quiet:
            assert kernel.run(quiet).error is None


@pytest.fixture
def wheel(kernel):
    """The smallest wheel there is."""
    name = "tiny-1.0-py3-none-any.whl"
    info = "tiny-1.0.dist-info"
    files = {
        "tiny.py": "value = 42\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(kernel.workspace / name, "w") as archive:
        for file, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(file, text)
    return name


@pytest.mark.needs("pip")
def test_pip_install_and_import_in_the_same_cell(kernel, wheel):
    result = kernel.run(f"%pip install ./{wheel}\nimport tiny\ntiny.value")
    assert result.result == "42", result.traceback + result.err
    assert ".packages" in kernel.run("import tiny; tiny.__file__").result
    assert kernel.run("!python3 -c 'import sys; print(sys.flags.isolated)'").out == "0\n"


@pytest.mark.needs("pip")
def test_pip_fails_soon_and_says_so(kernel):
    result = kernel.run("%pip install --no-index no-such-package-of-ours")
    assert result.seconds < 45 and result.done["status"] == "ok"
    assert "exit code 1" in result.err
