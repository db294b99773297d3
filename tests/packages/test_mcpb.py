"""The MCPB bundle: valid, and started as a host does: from its folder, with the user's settings alone."""

import json
import re
import shutil
import stat
import struct
import subprocess
import zipfile

import pytest
from conftest import PNG, ROOT, Client, main_job

TOOL = ROOT / "build/packaging-tools/node_modules/.bin/mcpb"
HOST_VARIABLES = {"HOME": "/nonexistent", "DOCUMENTS": "/nonexistent"}


@pytest.fixture
def bundle(dist, tmp_path):
    """The bundle, unpacked by Anthropic's tool as a host would unpack it."""
    if not TOOL.exists() or not shutil.which("node"):
        pytest.skip("no mcpb: ./dev test brings it")
    folder = tmp_path / "bundle"
    subprocess.run([TOOL, "unpack", dist("*.mcpb"), folder], check=True, capture_output=True)
    return folder


def substituted(text, folder, settings):
    values = {"__dirname": str(folder), **HOST_VARIABLES}
    values |= {f"user_config.{name}": str(value) for name, value in settings.items()}
    return re.sub(r"\$\{([^}]+)\}", lambda match: values[match[1]], text)


def launch(bundle, **chosen):
    """Command and environment as a host makes them of the manifest, its defaults and what was chosen."""
    manifest = json.loads((bundle / "manifest.json").read_text())
    settings = {name: field.get("default") for name, field in manifest["user_config"].items()}
    settings |= chosen
    settings = {k: str(v).lower() if isinstance(v, bool) else v for k, v in settings.items()}
    how = manifest["server"]["mcp_config"]
    words = [substituted(word, bundle, settings) for word in [how["command"], *how["args"]]]
    return words, {name: substituted(value, bundle, settings) for name, value in how["env"].items()}


def test_it_validates(bundle):
    done = subprocess.run([TOOL, "validate", bundle / "manifest.json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_runs_with_an_empty_environment(bundle, dist, template, tmp_path):
    version = dist("*.mcpb").name.split("-")[1]
    data = tmp_path / "data"
    data.mkdir()
    command, environment = launch(bundle, folder=data, python=template)
    assert stat.S_IMODE((bundle / "server/pykeep").stat().st_mode) & 0o100
    environment["PYKEEP_STATE_DIR"] = str(tmp_path / "state")  # not the home of who runs this test
    main_job(command, env=environment, cwd="/", version=version)


@pytest.mark.parametrize("network, answer", [(False, "--allow-network"), (True, "Network: on")])
def test_the_settings_reach_the_program(bundle, template, tmp_path, network, answer):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/sales.csv").write_text("month,revenue\n")
    command, environment = launch(
        bundle, folder=tmp_path / "data", python=template, network=network, memory="1GiB"
    )
    environment["PYKEEP_STATE_DIR"] = str(tmp_path / "state")
    with Client(command, env=environment, cwd="/") as client:
        client.connect()
        assert answer in client.call_tool("create_session", {"network": True}).text
        upload = {"name": "sales.csv", "path": str(tmp_path / "data/sales.csv")}
        assert not client.call_tool("upload_file", upload).is_error
        assert client.call_tool("upload_file", {"name": "x", "path": "/etc/hostname"}).is_error


def test_the_manifest_names_the_tools_there_are(bundle, tmp_path):
    manifest = json.loads((bundle / "manifest.json").read_text())
    command, environment = launch(bundle, folder=tmp_path)
    with Client(command, env={**environment, "PYKEEP_STATE_DIR": str(tmp_path)}, cwd="/") as client:
        client.connect()
        offered = {tool["name"] for tool in client.list_tools()}
    assert {tool["name"] for tool in manifest["tools"]} == offered


def test_the_icon_is_a_square_png(dist):
    with zipfile.ZipFile(dist("*.mcpb")) as archive:
        icon = archive.read("icon.png")
    assert icon.startswith(PNG) and struct.unpack(">II", icon[16:24]) == (512, 512)
