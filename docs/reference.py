#!/usr/bin/env python3
"""reference.py BINARY: writes docs/tools.md, what the server itself says that it offers."""

import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/tools.md"
sys.path.insert(0, str(ROOT / "tests/support"))
from mcp_client import Client  # noqa: E402

HEAD = """# Tools, prompts and resources

What a client is told, word for word. `python3 docs/reference.py build/release/pykeep` writes this page from the
server's own answers, and a test compares the two.
"""
HINTS = {
    "readOnlyHint": ("changes something", "only reads"),
    "destructiveHint": ("adds only", "may replace or delete"),
    "idempotentHint": ("", "again is the same as once"),
    "openWorldHint": ("nothing outside the sandbox", "reaches other systems"),
}


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def hints(annotations: dict) -> str:
    if annotations.get("readOnlyHint"):
        annotations = {name: on for name, on in annotations.items() if name != "destructiveHint"}
    words = [HINTS[name][bool(annotations[name])] for name in HINTS if name in annotations]
    return "Hints: " + ", ".join(word for word in words if word) + "."


def tool(info: dict) -> str:
    schema = info["inputSchema"]
    rows = [
        [
            f"`{name}`" + (" (required)" if name in schema.get("required", []) else ""),
            argument.get("type", "any"),
            argument.get("description", ""),
        ]
        for name, argument in schema.get("properties", {}).items()
    ]
    parts = [f"### {info['name']}: {info['title']}", info["description"], hints(info["annotations"])]
    if rows:
        parts.append(table(["Argument", "Type", ""], rows))
    return "\n\n".join(parts)


def prompt(info: dict) -> str:
    rows = [
        [
            f"`{argument['name']}`" + (" (required)" if argument.get("required") else ""),
            argument.get("description", ""),
        ]
        for argument in info.get("arguments", [])
    ]
    parts = [f"### {info['name']}: {info['title']}", info["description"]]
    if rows:
        parts.append(table(["Argument", ""], rows))
    return "\n\n".join(parts)


def resources(templates: list[dict]) -> str:
    rows = [
        [f"`{template['uriTemplate']}`", template.get("description", template["name"])]
        for template in templates
    ]
    return table(["URI", ""], rows)


def page(binary: str) -> str:
    with tempfile.TemporaryDirectory() as state, Client([binary, "--state-dir", state]) as client:
        hello = client.connect()
        tools = client.request("tools/list")["tools"]
        prompts = client.request("prompts/list")["prompts"]
        templates = client.request("resources/templates/list")["resourceTemplates"]
    parts = [
        HEAD.rstrip(),
        "## Instructions\n\nFor the model, before its first call:\n\n> " + hello["instructions"],
        "## Tools",
        *map(tool, tools),
        "## Prompts",
        *map(prompt, prompts),
        "## Resources\n\n" + resources(templates),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(sys.argv[1]), encoding="utf-8")
