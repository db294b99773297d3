"""A session as a notebook and as a script: valid, private, and with the same results when run again."""

import base64
import itertools
import json
import re
import subprocess

import nbclient
import nbformat
import pytest
from conftest import program, put_on_disk
from mcp_client import McpError
from test_hibernation import handle_of, images, run  # noqa: F401

CHART = "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.title('squares')\nplt.show()"
CELLS = [
    "x = 1\nprint('text: ä 😀')\nx + 1",
    "import sys\nprint('warned', file=sys.stderr)\nvalues = [\n    x,\n    2,\n]",
    "y = 2\nraise ValueError('what is here')",
    "text = '''a\n  %not magic\n'''\nz = len(text) \\\n    % 7\nprint(y, z)",
    "%time w = 5\nprint(w)",
    "import asyncio\nawait asyncio.sleep(0)\nprint('awaited')",
    "def later():\n    async def inner():\n        await asyncio.sleep(0)\n        return 7\n    return asyncio.run(inner()) if False else 7\nprint(later())",
    "this is no python",
    "print(sum(values), x + y + w)",
]


def export(client, session, name):
    uri = f"pykeep://sessions/{session}/{name}"
    (contents,) = client.request("resources/read", {"uri": uri})["contents"]
    assert contents["uri"] == uri
    return contents


def notebook_of(client, session):
    contents = export(client, session, "notebook.ipynb")
    assert contents["mimeType"] == "application/x-ipynb+json"
    book = nbformat.reads(contents["text"], as_version=nbformat.NO_CONVERT)
    nbformat.validate(book)
    assert (book.nbformat, book.nbformat_minor) == (4, 5)
    return book


def new_session(client):
    return re.search(r"session[ =\"]+([a-z2-7]{20,})", client.call_tool("create_session").text)[1]


def shown(cells):
    """What cells show, without what differs from run to run: tracebacks and times."""
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    streams = "".join(o["text"] for o in outputs if o["output_type"] == "stream" and o["name"] == "stdout")
    results = [o["data"]["text/plain"] for o in outputs if o["output_type"] == "execute_result"]
    errors = [(o["ename"], o["evalue"]) for o in outputs if o["output_type"] == "error"]
    return re.sub(r"(CPU|Wall) time.*\n|CPU times.*\n", "", streams), results, errors


@pytest.fixture(scope="module")
def told(shared_server):
    """A session that has run CELLS and shown a chart, and its server."""
    client = shared_server.client
    session = new_session(client)
    for code in [*CELLS, CHART]:
        run(client, code, session=session)
    return client, session


@pytest.fixture(scope="module")
def python():
    """One with ipykernel's own parts: that of the kernels."""
    return program("PYKEEP_TEST_PYTHON")


def test_a_notebook_holds_what_a_session_did_and_showed(told):
    client, session = told
    book = notebook_of(client, session)
    assert [cell.source for cell in book.cells] == [*CELLS, CHART]
    assert [cell.execution_count for cell in book.cells] == list(range(1, len(CELLS) + 2))
    text, result = book.cells[0].outputs
    assert (text.name, text.text, result.data["text/plain"]) == ("stdout", "text: ä 😀\n", "2")
    assert (book.cells[1].outputs[0].name, book.cells[1].outputs[0].text) == ("stderr", "warned\n")
    (error,) = book.cells[2].outputs
    assert (error.ename, error.evalue) == ("ValueError", "what is here")
    assert "raise ValueError" in "\n".join(error.traceback)
    charts = [o.data for o in book.cells[-1].outputs if "image/png" in o.get("data", {})]
    assert base64.b64decode(charts[0]["image/png"]).startswith(b"\x89PNG")
    assert session not in json.dumps(book)  # whoever gets the file does not get the session


def test_a_notebook_gives_the_same_when_run_again(told, tmp_path):
    book = notebook_of(*told)
    before = shown(book.cells[:-1])
    again = nbformat.from_dict({**book, "cells": book.cells[:-1]})
    nbclient.NotebookClient(again, timeout=60, kernel_name="python3").execute(cwd=str(tmp_path))
    ours, theirs = before, shown(again.cells)
    assert theirs[:2] == ours[:2]
    assert [error for error in ours[2] if error[0] != "SyntaxError"] == [
        error for error in theirs[2] if error[0] != "SyntaxError"
    ]


def test_a_script_gives_the_same_when_run_again(told, python, tmp_path):
    contents = export(*told, "script.py")
    assert contents["mimeType"] == "text/x-python"
    (tmp_path / "script.py").write_text(contents["text"])
    ran = subprocess.run([python, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr + contents["text"]
    expected = shown(notebook_of(*told).cells)[0]
    said = re.sub(r"(Wall|CPU) time.*\n|CPU times.*\n", "", ran.stdout)
    assert said.replace("ValueError('what is here')\n", "") == expected


def test_a_script_of_plain_python_needs_no_ipython(shared_server, tmp_path):
    client = shared_server.client
    session = new_session(client)
    for code in ("x = 20", "1 / 0", "print(x + 1)"):
        run(client, code, session=session)
    script = export(client, session, "script.py")["text"]
    assert "import" not in script
    ran = subprocess.run(
        ["python3", "-I", "-S", "-"], input=script, capture_output=True, text=True, timeout=60
    )
    assert (ran.returncode, ran.stdout) == (0, "ZeroDivisionError('division by zero')\n21\n")
    client.call_tool("close_session", {"session": session})


def test_both_are_bounded_and_say_what_is_missing(shared_server):
    client = shared_server.client
    session = new_session(client)
    noise = "import os, base64\nfrom IPython.display import display, HTML\n"
    for i in range(8):
        run(
            client,
            noise + f"display(HTML(base64.b64encode(os.urandom(140_000)).decode()))\n#{i}",
            session=session,
        )
    book = notebook_of(client, session)
    kept = [any("text/html" in o.get("data", {}) for o in cell.outputs) for cell in book.cells]
    assert kept == [False] * 4 + [True] * 4  # the newest
    assert "left out" in book.cells[0].outputs[0].text
    run(client, "#" + "x" * 800_000, session=session)
    run(client, "#" + "y" * 200_000, session=session)
    book = notebook_of(client, session)
    assert book.cells[0].cell_type == "markdown" and "left out" in book.cells[0].source
    assert len(book.cells) == 2
    assert len(export(client, session, "script.py")["text"]) < 210_000
    client.call_tool("close_session", {"session": session})


def pykeep(*arguments, env, code=0):
    command = [program("PYKEEP_BINARY"), "sessions", "export", *arguments]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert ran.returncode == code, ran.stderr
    return ran


def test_the_history_outlives_the_server(images, start, environment, tmp_path):  # noqa: F811
    names = itertools.count()

    def work():
        name = f"kept{next(names)}"
        first = start("--session", name)
        session = handle_of(run(first, "a = 1"))
        run(first, "b = 2")
        return first, (name, session)

    name, session = put_on_disk(work)
    second = start("--session", name)
    run(second, "c = a + b")
    notebook_of(second, session)  # the history is written behind the answer: now it is
    second.process.kill()
    second.close()
    third = start("--session", name)
    sources = [cell.source for cell in notebook_of(third, session).cells]
    assert sources == ["a = 1", "b = 2", "c = a + b"]
    run(third, "d = 4")
    cells = notebook_of(third, session).cells
    assert [cell.cell_type for cell in cells[-2:]] == ["markdown", "code"]  # the kill lost a kernel

    # The command line reads it while the server goes on.
    book = export(third, session, "notebook.ipynb")["text"]
    assert pykeep(name, env=environment).stdout == book
    file = tmp_path / "all.py"
    pykeep(session, "--format", "py", "-o", str(file), env=environment)
    assert file.read_text() == export(third, session, "script.py")["text"]
    assert "no session named nobody" in pykeep("nobody", env=environment, code=1).stderr
    missing = pykeep(name, "-o", str(tmp_path / "no" / "where"), env=environment, code=1)
    assert "cannot write" in missing.stderr


def test_a_fork_begins_with_the_history_of_its_snapshot(images, shared_server):  # noqa: F811
    client = shared_server.client
    origin = new_session(client)
    run(client, "x = 1", session=origin)
    made = re.search(r"Snapshot ([a-z2-7]{26})", client.call_tool("snapshot", {"session": origin}).text)[1]
    run(client, "x = 2", session=origin)
    restored = client.call_tool("restore_snapshot", {"snapshot": made})
    fork = re.search(r"Session ([a-z2-7]{26})", restored.text)[1]
    run(client, "x + 1", session=fork)
    assert [cell.source for cell in notebook_of(client, fork).cells] == ["x = 1", "x + 1"]
    client.call_tool("restore_snapshot", {"snapshot": made, "session": origin})
    assert [cell.source for cell in notebook_of(client, origin).cells] == ["x = 1"]
    for session in (origin, fork):
        client.call_tool("close_session", {"session": session})


def test_a_kernel_that_died_leaves_a_cell_that_is_not_run_again(fresh):
    fresh("a = 1")
    fresh("import os\nos.kill(os.getpid(), 9)")
    fresh("b = 2")
    book = notebook_of(fresh.client, fresh.session)
    dead = book.cells[2]  # after `pass` of the fixture
    assert dead.metadata.tags == ["skip-execution"]
    assert "the kernel died" in dead.outputs[-1].text
    assert book.cells[3].cell_type == "markdown"
    assert "# os.kill(os.getpid(), 9)\n" in export(fresh.client, fresh.session, "script.py")["text"]


def test_nobody_reads_what_is_not_there(shared_server):
    for session in ("a" * 26, "..", "x/.."):
        with pytest.raises(McpError, match="notebook.ipynb"):
            export(shared_server.client, session, "notebook.ipynb")
