"""Compares answers with the example exchanges: every key, in its order, and every value but some."""

import json
import re
from pathlib import Path

EXAMPLES = Path(__file__).with_name("examples")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
NANOSECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,8}[1-9])?Z")
SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
PNG = re.compile(r"iVBORw0KGgo[A-Za-z0-9+/]+=*")
TRACEBACK = re.compile(r'  File "(?!<cell>)[^"]+", line \d+')

# Values that the examples call illustrative: what they have to look like instead.
VARIES = {
    "id": re.compile(f"{UUID.pattern}|[0-9a-f]{{16}}"),
    "sandbox_id": UUID,
    "from_snapshot": re.compile(f"({UUID.pattern})?"),
    "snapshot_id": UUID,
    "parent_id": UUID,
    "tree_id": UUID,
    "winner": UUID,
    "deleted": UUID,
    "children": UUID,
    "guest_ip": re.compile(r"10\.200\.\d+\.\d+"),
    "host_tap": re.compile(r"ns-\d{5}"),
    "workspace": re.compile("local-dev"),
    "created_at": NANOSECONDS,
    "at": NANOSECONDS,
    "mem_path": re.compile(f".*/snapshots/{UUID.pattern}/vm.mem"),
    "state_path": re.compile(f".*/snapshots/{UUID.pattern}/vm.state"),
    "proxy_url": re.compile(rf"/v1/sandboxes/{UUID.pattern}/proxy/\d+/"),
    "image/png": PNG,
    "commit": re.compile(".*"),
    "err": re.compile("snapshot restore: snap load: .*"),
    "boot_ms": range(1, 60_000),
    "duration_ms": range(60_000),
    "idle_seconds": range(60),
    "mtime": range(1_000_000_000, 10_000_000_000),
}


def example(name):
    return json.loads((EXAMPLES / name).read_text())


def same(expected, got, key="", where=""):
    """Asserts it; `where`: the path so far."""
    assert type(expected) is type(got), f"{where}: {got!r} is not like {expected!r}"
    if isinstance(expected, dict):
        assert list(expected) == list(got), where
        for name in expected:
            same(expected[name], got[name], name, f"{where}.{name}")
    elif isinstance(expected, list):
        assert len(expected) == len(got), where
        for index, pair in enumerate(zip(expected, got, strict=True)):
            same(*pair, key, f"{where}[{index}]")
    elif isinstance(VARIES.get(key), re.Pattern) and isinstance(got, str):
        assert VARIES[key].fullmatch(got), f"{where}: {got!r}"
    elif isinstance(VARIES.get(key), range):
        assert got in VARIES[key], f"{where}: {got!r}"
    elif key in ("stderr", "text/plain") and isinstance(got, str):
        assert neutral(expected) == neutral(got), where
    else:
        assert expected == got, where


def neutral(text):
    """Without what differs between two Pythons: places of files, addresses, the parser's frames."""
    text = re.sub(r"at 0x[0-9a-f]+", "at 0x0", text)
    lines = TRACEBACK.sub('  File "F", line 0', text).splitlines()
    return [line for line in lines if "^" not in line and not line.startswith("    ")]


def like(case, answer):
    """An answer as an example has it: {"status", "headers"?, "body" or "body_text"?}."""
    wanted = case.get("response", case)
    assert answer.status == wanted["status"], answer
    given = {name.lower(): text for name, text in answer.headers.items()}
    for name, text in wanted.get("headers", {}).items():
        assert given.get(name.lower()) == text, (name, given)
    if "body" in wanted:
        assert given["content-type"] == "application/json"
        same(wanted["body"], answer.body)
    elif "body_text" in wanted:
        assert answer.data.decode() == wanted["body_text"]
    elif wanted["status"] == 204:
        assert answer.data == b""
