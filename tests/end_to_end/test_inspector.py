"""The MCP Inspector's command line as a client: somebody else's implementation of both eras."""

import base64
import functools
import json
import os
import pathlib
import struct
import subprocess
import zlib

import pytest
from conftest import environment_in, program
from http_server import HttpServer

INSTALLED = pathlib.Path(__file__).parents[2] / "build" / "inspector" / "node_modules"
CHART = "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()"


def inspector():
    node = INSTALLED / "node" / "bin" / "node"
    program = INSTALLED / ".bin" / "mcp-inspector"
    if not node.exists() or not program.exists():
        pytest.skip("the MCP Inspector is not installed in build/inspector (./dev test brings it with npm)")
    return [node, program, "--cli"]


@pytest.fixture
def inspect_at(tmp_path):
    """inspect_at(target, era, method, ...) runs the Inspector against a command or a URL and returns what it
    writes to its output file, as bytes."""

    def inspect(target, era, method, *options, form="json"):
        output = tmp_path / "output"
        command = [*inspector(), *target, "--protocol-era", era, "--method", method, *options]
        command += ["--output", output, "--output-format", form]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        return output.read_bytes()

    return inspect


@pytest.fixture
def inspect(inspect_at, tmp_path):
    """The same against a fresh server over stdio. The state is kept between the calls of a test."""
    # The Inspector starts servers with a short list of variables.
    given = {"PYKEEP_STATE_DIR": str(tmp_path / "state")}
    given |= {key: os.environ[key] for key in ("PYKEEP_TEMPLATE", "ASAN_OPTIONS") if os.environ.get(key)}
    variables = [word for name, value in given.items() for word in ("-e", f"{name}={value}")]
    return functools.partial(inspect_at, [program("PYKEEP_BINARY"), *variables])


@pytest.fixture(scope="module")
def http_server(tmp_path_factory):
    inspector()
    environment = environment_in(tmp_path_factory.mktemp("inspector"))
    with HttpServer([program("PYKEEP_BINARY")], env=environment) as server:
        yield server


def size_of_png(data: bytes):
    """Width and height of a PNG whose every chunk is whole, whose pixels inflate and which ends."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, kinds, pixels = 8, [], b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        (check,) = struct.unpack(">I", data[at + 8 + length : at + 12 + length])
        assert check == zlib.crc32(kind + body)
        kinds.append(kind)
        pixels += body if kind == b"IDAT" else b""
        at += 12 + length
    assert kinds[0] == b"IHDR" and kinds[-1] == b"IEND"
    assert zlib.decompress(pixels)
    return struct.unpack(">II", data[16:24])


def check_chart(result):
    if result.get("isError") and "No module named 'matplotlib'" in json.dumps(result):
        pytest.skip("the Python environment has no matplotlib")
    images = [block for block in result["content"] if block["type"] == "image"]
    assert [image["mimeType"] for image in images] == ["image/png"]
    width, height = size_of_png(base64.b64decode(images[0]["data"]))
    assert width > 200 and height > 150


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_lists_the_tools(inspect, era):
    tools = json.loads(inspect(era, "tools/list", "--strict"))["tools"]
    assert [tool["name"] for tool in tools][:3] == ["run_python", "wait_execution", "interrupt_execution"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_runs_a_chart_and_writes_its_file(inspect, era):
    call = ("--tool-name", "run_python", "--tool-args-json", json.dumps({"code": CHART}))
    result = json.loads(inspect(era, "tools/call", *call))
    check_chart(result)

    # Raw output prefers text to images where a result has both; the chart's own file has only the image.
    # It is read by another server process, which takes the session over.
    execution = result["_meta"]["io.pykeep/execution"]
    uri = f"pykeep://sessions/{execution['session']}/files/{execution['artifacts'][0]}"
    assert size_of_png(inspect(era, "resources/read", "--uri", uri, form="raw"))[0] > 200


@pytest.mark.parametrize(
    ("path", "era"), [("/mcp", "legacy"), ("/mcp", "auto"), ("/mcp", "modern"), ("/sse", "legacy")]
)
def test_over_http(http_server, inspect_at, path, era):
    target = [http_server.url + path, "--transport", "sse" if path == "/sse" else "http"]
    tools = json.loads(inspect_at(target, era, "tools/list", "--strict"))["tools"]
    assert tools[0]["name"] == "run_python"
    call = ("--tool-name", "run_python", "--tool-args-json", json.dumps({"code": CHART}))
    check_chart(json.loads(inspect_at(target, era, "tools/call", *call)))
