"""`pykeep client-config` in files that people have: whatever is in there stays, to the byte."""

import concurrent.futures
import json
import os
import re
import stat
import subprocess

import pytest
import tomllib
import yaml
from conftest import program

JSON_CLIENTS = {
    "claude-desktop": ("mcpServers", ".config/Claude/claude_desktop_config.json"),
    "claude-code": ("mcpServers", ".mcp.json"),
    "vscode": ("servers", ".config/Code/User/mcp.json"),
    "cursor": ("mcpServers", ".cursor/mcp.json"),
    "windsurf": ("mcpServers", ".codeium/windsurf/mcp_config.json"),
    "jetbrains": ("mcpServers", ".junie/mcp/mcp.json"),
    "zed": ("context_servers", ".config/zed/settings.json"),
    "gemini": ("mcpServers", ".gemini/settings.json"),
}
CLIENTS = {
    **JSON_CLIENTS,
    "codex": ("mcp_servers", ".codex/config.toml"),
    "goose": ("extensions", ".config/goose/config.yaml"),
    "librechat": ("mcpServers", "librechat.yaml"),
}

# What people have in their files, by the client that reads them.
FILES = {
    "two spaces": (
        "cursor",
        '{\n  "mcpServers": {\n    "other": {\n      "command": "npx",\n      "args": ["-y", "x"]\n    }\n  }\n}\n',
    ),
    "comments and trailing commas": (
        "zed",
        '// Zed settings\n{\n  "theme": "One Dark", // dark\n  /* servers\n   * of ours */\n  "context_servers": { // all\n'
        '    // the first\n    "other": {"command": "a", "args": [],},\n    // "off": {},\n  },\n  "tabs": {"mcpServers": 1,},\n}\n',
    ),
    "tabs": (
        "vscode",
        '{\n\t"inputs": [],\n\t"servers": {\n\t\t"other": {\n\t\t\t"url": "http://x/[{\\"}"\n\t\t}\n\t}\n}\n',
    ),
    "one line": ("gemini", '{"theme":"x","mcpServers":{"other":{"command":"a"}}}'),
    "one line, spaces": ("gemini", '{ "mcpServers": { "other": { "command": "a" } }, "z": 1 }\n'),
    "first member beside its brace": ("cursor", '{"a": 1,\n "mcpServers": {"other": {},\n  "next": {}}}\n'),
    "no table": (
        "windsurf",
        '{\n    "other": {\n        "mcpServers": {"pykeep": {"command": "not ours"}}\n    }\n}',
    ),
    "empty table": ("claude-desktop", '{\n  "mcpServers": {},\n  "z": true\n}\n'),
    "empty table over lines": ("claude-desktop", '{\n  "mcpServers": {\n    // none yet\n  }\n}\n'),
    "empty object": ("claude-desktop", "{}"),
    "only a comment": ("zed", "// nothing yet"),
    "empty": ("cursor", ""),
    "empty toml": ("codex", ""),
    "empty yaml": ("goose", ""),
    "blanks": ("cursor", "\n  \n"),
    "CRLF": ("vscode", '{\r\n  "servers": { // c\r\n    "other": {}\r\n  }\r\n}\r\n'),
    "BOM": ("vscode", '\ufeff{\r\n  "servers": {\r\n    "other": {}\r\n  }\r\n}'),
    "BOM alone": ("cursor", "\ufeff"),
    "escaped and foreign": (
        "cursor",
        '{"mcpServers": {"caf\\u00e9 \\"x\\"": {"command": "ü\\\\"}}, "😀": [1, -2.5e3, null, [{}]]}',
    ),
    "toml": (
        "codex",
        'model = "x" # the model\n\n[mcp_servers.other]\ncommand = "npx"\nargs = [\n  "a", # one\n  "]",\n]\n'
        'env = { A = "1" }\n\n[projects."/home/me"]\ntrust = "yes"\ntext = """\n[mcp_servers.pykeep]\n"""\n# the end\n',
    ),
    "toml without an end of line": ("codex", "[a]\nb = 'c'"),
    "toml CRLF": ("codex", '[mcp_servers]\r\n[mcp_servers.other]\r\ncommand = "a"\r\n\r\n'),
    "toml nested": (
        "codex",
        '[x.mcp_servers.pykeep]\ncommand = "not ours"\n[[profiles]]\nat = 1979-05-27T07:32:00Z\n',
    ),
    "yaml": (
        "goose",
        "GOOSE_PROVIDER: openai # mine\nextensions: # all of them\n  # the first\n  developer:\n    enabled: true\n"
        "    description: |\n      extensions:\n        pykeep: not ours\n\n      and: more\n    type: builtin\n"
        '  "quoted name":\n    args: [a,\n      "b: ]"]\n    note: it\'s here\n# between\nGOOSE_MODE: auto\nlist:\n- a: 1\n  b: 2\n- c\n',
    ),
    "yaml in four columns": (
        "librechat",
        "---\nversion: 1.2\nmcpServers:\n    other:\n        command: a\n        args:\n        - -y\n        - 'x: y'\n",
    ),
    "yaml without the table": (
        "librechat",
        "version: 1.2\nnested:\n  mcpServers:\n    pykeep: {command: not ours}",
    ),
    "yaml with an empty table": ("goose", "extensions: {}  # none\nother: 1\n"),
    "yaml with nothing in the table": ("goose", "extensions:\nother: &anchor\n  a: 1\ncopy: *anchor\n"),
    "yaml CRLF": ("goose", "extensions:\r\n  a:\r\n    cmd: b\r\n"),
    "yaml, long texts": (
        "goose",
        'a: "one\n  two: # no comment\n  three"\nb: >-\n  extensions:\n   x\nc: plain\n  more\nextensions:\n  a: {b: c}\n',
    ),
}

# What we do not understand well enough to change it: the file, and the line that is named.
REFUSED = {
    "cut off": ("cursor", '{\n  "mcpServers": {\n    "a": {\n', 4),
    "not an object": ("cursor", "[]", 1),
    "a text as the table": ("cursor", '{\n  "mcpServers": "x"\n}', 2),
    "the table twice": ("cursor", '{\n  "mcpServers": {},\n  "mcpServers": {}\n}', 3),
    "unquoted keys": ("cursor", "{\n  mcpServers: {}\n}", 2),
    "a missing comma": ("cursor", '{"a": 1\n "b": 2}', 2),
    "two values": ("cursor", "{}\n{}", 2),
    "an endless comment": ("cursor", "{}\n/* x", 2),
    "an endless text": ("cursor", '{"a": "b\n}', 1),
    "not a value": ("cursor", '{"a": True}', 1),
    "too deep": ("cursor", '{"a":' + "[" * 10_000, 1),
    "binary": ("cursor", "\x00\x01\x02", 1),
    "an inline table": ("codex", 'a = 1\nmcp_servers = { other = { command = "x" } }\n', 2),
    "an inline entry": ("codex", "[mcp_servers]\npykeep = {}\n", 2),
    "dotted keys": ("codex", 'mcp_servers.pykeep.command = "x"\n', 1),
    "an array of tables": ("codex", "[[mcp_servers]]\n", 1),
    "toml cut off": ("codex", "a = 1\nb = [\n  1,\n", 4),
    "toml without a value": ("codex", "a =\n", 1),
    "no toml": ("codex", "a = 1\nhello\n", 2),
    "an endless toml text": ("codex", 'a = """\n\n', 3),
    "a list": ("goose", "- a\n", 1),
    "yaml in braces": ("goose", "a: 1\nextensions: {a: {cmd: b}}\n", 2),
    "a list as the table": ("goose", "extensions:\n  - a\n", 2),
    "a list in its column": ("goose", "extensions:\n- a\n", 2),
    "an alias": ("goose", "a: &x\n  b: 1\nextensions: *x\n", 3),
    "tabs in yaml": ("goose", "extensions:\n\ta: 1\n", 2),
    "two documents": ("goose", "a: 1\n---\nextensions:\n", 2),
    "yaml twice": ("goose", "extensions:\nextensions:\n", 2),
    "an endless quote": ("goose", "a: 'b\n", 1),
    "no yaml": ("goose", "hello\n", 1),
}


@pytest.fixture
def pykeep(tmp_path):
    env = {"HOME": str(tmp_path), "PATH": "/nowhere", "PYKEEP_STATE_DIR": str(tmp_path / "state")}

    def run(*arguments, code=0, **variables):
        ran = subprocess.run(
            [program("PYKEEP_BINARY"), "client-config", *arguments],
            env=env | variables,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ran.returncode == code, ran.stderr
        return ran

    return run


def read(client, text):
    """What another reader sees in the file."""
    text = text.removeprefix("\ufeff")
    if client == "codex":
        return tomllib.loads(text.replace("\r\n", "\n"))
    if client in ("goose", "librechat"):
        return yaml.safe_load(text) or {}
    strings = r'"(?:\\.|[^"\\])*"'
    bare = re.sub(rf"({strings})|//[^\n]*|/\*.*?\*/", lambda m: m[1] or "", text, flags=re.S)
    bare = re.sub(rf"({strings})|,(?=\s*[}}\]])", lambda m: m[1] or "", bare, flags=re.S)
    return json.loads(bare) if bare.strip() else {}


def comments(client, text):
    return sorted(re.findall(r"//[^\n\r]*" if client in JSON_CLIENTS else r"#[^\n\r]*", text))


@pytest.mark.parametrize("name", FILES)
def test_an_entry_goes_in_and_comes_out_and_nothing_else_moves(pykeep, tmp_path, name):
    client, text = FILES[name]
    table, _ = CLIENTS[client]
    file = tmp_path / "config"
    file.write_bytes(text.encode())
    pykeep(client, "--write", "--file", str(file), "--", "--session", "my work")
    written = file.read_bytes().decode()
    before, after = read(client, text), read(client, written)
    entry = after[table].pop("pykeep")
    assert entry.get("command", entry.get("cmd")) == os.path.realpath(program("PYKEEP_BINARY"))
    assert entry["args"] == ["--session", "my work"]
    if not before.get(table):  # was it there, and empty?
        before.pop(table, None)
        after.pop(table)
    assert after == before
    assert list(after) == list(before)
    assert comments(client, written) == comments(client, text)
    assert ("\r\n" in written) == ("\r\n" in text) or not text
    assert "\n" not in written.replace("\r\n", "") or "\r\n" not in text
    assert written.startswith("\ufeff") == text.startswith("\ufeff")

    pykeep(client, "--write", "--file", str(file), "--", "--no-images")
    changed = read(client, file.read_bytes().decode())
    assert changed[table]["pykeep"]["args"] == ["--no-images"]

    # It comes out of a file that somebody else has changed since, and leaves the change.
    comment = "// new\n" if client in JSON_CLIENTS else "# new\n"
    end = "" if written.endswith("\n") else "\n"
    file.write_bytes((written + end + comment).encode())
    pykeep(client, "--remove", "--file", str(file))
    left = file.read_bytes().decode()
    after = read(client, left)
    if not before.get(table):
        assert not after.pop(table, None)
    assert after == before
    assert comment.strip() in left

    # Out of its own file it comes without a trace.
    file.write_bytes(written.encode())
    (tmp_path / "config.pykeep-backup").write_bytes(text.encode())  # as the first time left it
    pykeep(client, "--remove", "--file", str(file))
    assert file.read_bytes().decode() == text
    assert sorted(os.listdir(tmp_path)) == ["config"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_does_not_understand_stays_as_it_is(pykeep, tmp_path, name):
    client, text, line = REFUSED[name]
    file = tmp_path / "config"
    file.write_bytes(text.encode())
    said = pykeep(client, "--write", "--file", str(file), code=1).stderr
    assert f"{file}: line {line}: " in said and "Nothing was changed" in said
    assert CLIENTS[client][0] in said.split("by hand:", 1)[1]  # what to paste
    if line == 1:
        pykeep(client, "--remove", "--file", str(file), code=1)
    assert file.read_bytes().decode() == text
    assert os.listdir(tmp_path) == ["config"]


@pytest.mark.parametrize("client", CLIENTS)
def test_each_client_has_its_file_and_form(pykeep, tmp_path, client):
    table, path = CLIENTS[client]
    printed = pykeep(client).stdout
    assert not (tmp_path / path).exists()
    pykeep(client, "--write")
    assert (tmp_path / path).read_text() == printed
    assert "has it already" in pykeep(client, "--write").stdout
    entry = read(client, printed)[table]["pykeep"]
    assert entry.get("command", entry.get("cmd")).startswith("/")
    pykeep(client, "--remove")
    assert not (tmp_path / path).exists()
    url = "https://host/mcp"
    if client in ("claude-desktop", "jetbrains"):
        assert "only starts programs" in pykeep(client, "--url", url, code=1).stderr
        return
    entry = read(client, pykeep(client, "--url", url, "--name", "far").stdout)[table]["far"]
    key = {"windsurf": "serverUrl", "gemini": "httpUrl", "goose": "uri"}.get(client, "url")
    assert entry[key] == url and "command" not in entry
    kind = {
        "claude-code": "http",
        "vscode": "http",
        "goose": "streamable_http",
        "librechat": "streamable-http",
    }
    assert entry.get("type") == kind.get(client)


@pytest.mark.parametrize(
    "place, advice",
    [
        (".npm/_npx/0a1b/node_modules/.bin", "npm install -g"),
        (".cache/uv/archive-v0/Xy/bin", "uv tool install"),
        ("elsewhere/archive-v0/Xy/bin", "uv tool install"),
        (".local/share/uv/tools/pykeep/bin", None),
        ("node_modules/.bin", None),
    ],
)
def test_a_path_in_a_cache_is_warned_of(pykeep, tmp_path, place, advice):
    found = tmp_path / place / "pykeep"
    found.parent.mkdir(parents=True)
    found.symlink_to(program("PYKEEP_BINARY"))
    # As npx starts it, and as the Python package does.
    for how in ({"PATH": str(found.parent)}, {"PYKEEP_LAUNCHER": str(found)}):
        ran = pykeep("cursor", **how)
        assert read("cursor", ran.stdout)["mcpServers"]["pykeep"]["command"] == str(found)
        assert ("in a cache" in ran.stderr) == bool(advice) and (advice or "") in ran.stderr
    assert "in a cache" not in pykeep("cursor", "--url", "https://host/mcp", **how).stderr
    assert "in a cache" not in pykeep("cursor", "--remove", **how).stderr


def test_links_modes_and_backups(pykeep, tmp_path):
    real = tmp_path / "dotfiles" / "mcp.json"
    real.parent.mkdir()
    real.write_text("{}\n")
    real.chmod(0o640)
    link = tmp_path / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to("../dotfiles/mcp.json")
    pykeep("cursor", "--write")
    assert link.is_symlink() and "pykeep" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    backup = tmp_path / "dotfiles" / "mcp.json.pykeep-backup"
    assert backup.read_text() == "{}\n" and stat.S_IMODE(backup.stat().st_mode) == 0o640
    pykeep("cursor", "--remove")
    assert real.read_text() == "{}\n" and link.is_symlink() and not backup.exists()

    real.unlink()  # a link to what is not there yet
    pykeep("cursor", "--write")
    assert link.is_symlink() and "pykeep" in real.read_text()
    link.unlink()
    link.symlink_to("mcp.json")
    assert "Too many levels" in pykeep("cursor", "--write", code=1).stderr
    link.unlink()
    link.mkdir()
    assert "not a file" in pykeep("cursor", "--write", code=1).stderr


def test_several_at_a_time_lose_nothing(pykeep, tmp_path):
    file = tmp_path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"mine": {}}}')
    names = [f"server-{i}" for i in range(8)]
    with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: pykeep("cursor", "--write", "--name", name), names))
    assert sorted(json.loads(file.read_text())["mcpServers"]) == ["mine", *names]


def test_a_name_written_with_escapes_is_the_same_name(pykeep, tmp_path):
    file = tmp_path / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text('[mcp_servers."pyk\\u0065ep"]\ncommand = "old"\n')
    pykeep("codex", "--write")
    assert list(tomllib.loads(file.read_text())["mcp_servers"]) == ["pykeep"]


def test_a_wrong_use_is_refused(pykeep, tmp_path):
    for arguments, said in [
        (["nonsense"], "nonsense"),
        (["cursor", "--", "--sesion", "x"], "--sesion"),
        (["cursor", "--session", "x"], "--session"),
        (["cursor", "--name", 'a"b'], "expected letters"),
        (["cursor", "--write", "--remove"], "--remove"),
        (["cursor", "--url", "http://x/mcp", "--", "--no-images"], "--url"),
    ]:
        assert said in pykeep(*arguments, code=2).stderr
    assert not (tmp_path / ".cursor").exists()
