"""The entries that docs/clients.md and README.md give by hand are what `pykeep client-config` prints."""

import json
import re
import subprocess

import pytest
import tomllib
from pages import ROOT

PAGE = (ROOT / "docs/clients.md").read_text(encoding="utf-8")
CLIENTS = re.findall(r"^\| \[([^]]+)\]\(#[\w-]+\) \| `([a-z-]+)` \| `([^`]+)`", PAGE, re.MULTILINE)
BY_HAND_ONLY = {"headers"}  # what client-config leaves to people: secrets


def parsed(language: str, text: str) -> dict:
    if language == "json":
        return json.loads(text)
    if language == "toml":
        return tomllib.loads(text)
    return pytest.importorskip("yaml").safe_load(text)


def section(title: str) -> str:
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]


def printed(binary, client, *arguments) -> tuple[str, str]:
    """The entry, and what is said of where it belongs."""
    done = subprocess.run(
        [binary, "client-config", client, *arguments],
        env={"HOME": "/home/me"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout, done.stderr


def entry_in(document: dict) -> tuple[str, dict]:
    """The table's name, and the entry `pykeep` in it."""
    (table, entries), *others = document.items()
    assert not others and list(entries) == ["pykeep"], document
    return table, entries["pykeep"]


def test_every_client_has_its_section_and_its_file(binary):
    told = subprocess.run(
        [binary, "client-config", "none"], capture_output=True, text=True, timeout=60
    ).stderr
    known = re.search(r"\{([a-z,-]+)\}", told)[1].split(",")
    assert [client for _, client, _ in CLIENTS] == known
    for title, client, file in CLIENTS:
        assert f"pykeep client-config {client} --write" in section(title)
        where = printed(binary, client)[1]
        assert file.removeprefix("~") in where, (file, where)


@pytest.mark.parametrize("title, client", [(title, client) for title, client, _ in CLIENTS])
def test_entries_by_hand_are_those_that_are_written(title, client, binary):
    for language, text in re.findall(
        r"^```(json|toml|yaml)\n(.*?)^```", section(title), re.MULTILINE | re.DOTALL
    ):
        table, by_hand = entry_in(parsed(language, text))
        arguments = ["--url", "https://keep.example.com/mcp"] if "url" in by_hand else []
        own_table, own = entry_in(parsed(language, printed(binary, client, *arguments)[0]))
        assert table == own_table
        assert by_hand.keys() - BY_HAND_ONLY == own.keys()
        for key in own.keys() - {"command", "cmd", "args"}:
            assert by_hand[key] == own[key], key


def test_the_readmes_entry_is_the_common_one(binary):
    block = re.search(r"^```json\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)[1]
    assert entry_in(json.loads(block))[1].keys() == {"command", "args"}
