"""server.json: the rules of the registry's schema of 2025-12-11 for what it uses, and that all packages agree."""

import hashlib
import json
import re
import tarfile
import zipfile

import pytest
from conftest import ROOT
from release import PROJECT

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
INPUT = {"value", "default", "description", "format", "isRequired", "isSecret", "choices", "placeholder"}
INPUT |= {"variables", "type", "name", "isRepeated", "valueHint"}
PACKAGE = {
    "registryType",
    "identifier",
    "version",
    "fileSha256",
    "registryBaseUrl",
    "runtimeHint",
    "transport",
}
LISTS = {"runtimeArguments", "packageArguments", "environmentVariables"}


@pytest.fixture(scope="module")
def entry(dist):
    return json.loads(dist("server.json").read_text())


def test_the_head(entry):
    assert entry["$schema"] == SCHEMA
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"])
    assert 1 <= len(entry["description"]) <= 100
    assert 1 <= len(entry["title"]) <= 100
    assert re.fullmatch(r"\d+\.\d+\.\d+", entry["version"])
    assert set(entry["repository"]) == {"url", "source"}
    assert entry["websiteUrl"].startswith("https://")
    assert set(entry) <= {
        "$schema", "name", "title", "description", "version", "websiteUrl", "repository", "packages"
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["mcpb", "pypi", "npm", "oci"])
def test_each_package(entry, kind):
    (package,) = [one for one in entry["packages"] if one["registryType"] == kind]
    assert set(package) <= PACKAGE | LISTS and package["identifier"]
    assert package["transport"] == {"type": "stdio"}
    assert package.get("version", entry["version"]) == entry["version"]
    assert "runtimeArguments" not in package or "runtimeHint" in package
    for field in LISTS & set(package):
        for given in package[field]:
            assert set(given) <= INPUT
            assert given.get("format", "string") in {"string", "number", "boolean", "filepath"}
            assert all(isinstance(given.get(key, ""), str) for key in ("value", "default", "description"))
            if field == "environmentVariables":
                assert given["name"] and "type" not in given
            else:
                assert given["type"] == "named" and given["name"].startswith("-")


def test_the_bundle_is_the_one_it_names(entry, dist):
    (package,) = [one for one in entry["packages"] if one["registryType"] == "mcpb"]
    bundle = dist("*.mcpb")
    assert package["identifier"].endswith(f"/{bundle.name}")
    assert package["fileSha256"] == hashlib.sha256(bundle.read_bytes()).hexdigest()


def test_each_package_claims_the_name(entry, dist):
    """What the registry looks for before it believes that package and entry have one owner."""
    with tarfile.open(dist("pykeep-npm-*.tgz")) as tar:
        assert json.load(tar.extractfile("package/package.json"))["mcpName"] == entry["name"]
    with zipfile.ZipFile(dist("*.whl")) as archive:
        about = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        assert f"mcp-name: {entry['name']}\n" in archive.read(about).decode()
    image = (ROOT / "packaging/oci/Dockerfile").read_text()
    assert f"LABEL io.modelcontextprotocol.server.name={entry['name']}\n" in image


def test_the_project_is_named_alike_everywhere(dist):
    named = {
        "packaging/python/pyproject.toml": PROJECT["url"],
        "packaging/npm/package.json": PROJECT["url"],
        "packaging/mcpb/manifest.json": PROJECT["url"],
    }
    assert not [file for file, url in named.items() if url not in (ROOT / file).read_text()]
