"""The MCP Inspector's command line as a client: somebody else's implementation of both eras."""

import base64
import json
import os
import pathlib
import struct
import subprocess
import zlib

import pytest
from conftest import program

INSTALLED = pathlib.Path(__file__).parents[2] / "build" / "inspector" / "node_modules"
CHART = "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()"


@pytest.fixture
def inspect(tmp_path):
    """inspect(era, method, ...) runs the Inspector against a fresh server and returns what it writes to its
    output file, as bytes. The state is kept between the calls of a test."""
    node = INSTALLED / "node" / "bin" / "node"
    inspector = INSTALLED / ".bin" / "mcp-inspector"
    if not node.exists() or not inspector.exists():
        pytest.skip("the MCP Inspector is not installed in build/inspector (./dev test brings it with npm)")
    # The Inspector starts servers with a short list of variables.
    given = {"PYKEEP_STATE_DIR": str(tmp_path / "state")}
    given |= {key: os.environ[key] for key in ("PYKEEP_TEMPLATE", "ASAN_OPTIONS") if os.environ.get(key)}
    variables = [word for name, value in given.items() for word in ("-e", f"{name}={value}")]

    def inspect(era, method, *options, form="json"):
        output = tmp_path / "output"
        command = [node, inspector, "--cli", program("PYKEEP_BINARY"), *variables, "--protocol-era", era]
        command += ["--method", method, *options, "--output", output, "--output-format", form]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        return output.read_bytes()

    return inspect


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


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_lists_the_tools(inspect, era):
    tools = json.loads(inspect(era, "tools/list", "--strict"))["tools"]
    assert [tool["name"] for tool in tools][:3] == ["run_python", "wait_execution", "interrupt_execution"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_runs_a_chart_and_writes_its_file(inspect, era):
    call = ("--tool-name", "run_python", "--tool-args-json", json.dumps({"code": CHART}))
    result = json.loads(inspect(era, "tools/call", *call))
    if result.get("isError") and "No module named 'matplotlib'" in json.dumps(result):
        pytest.skip("the Python environment has no matplotlib")
    images = [block for block in result["content"] if block["type"] == "image"]
    assert [image["mimeType"] for image in images] == ["image/png"]
    width, height = size_of_png(base64.b64decode(images[0]["data"]))
    assert width > 200 and height > 150

    # Raw output prefers text to images where a result has both; the chart's own file has only the image.
    # It is read by another server process, which takes the session over.
    execution = result["_meta"]["io.pykeep/execution"]
    uri = f"pykeep://sessions/{execution['session']}/files/{execution['artifacts'][0]}"
    assert size_of_png(inspect(era, "resources/read", "--uri", uri, form="raw"))[0] > 200
