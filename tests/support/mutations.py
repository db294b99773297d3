"""Real messages, and endless broken ones made from them: the same ones for the same seed.

No whole `tools/call` of run_python is among the messages, so that what survives its mutation starts no
kernel and is answered at once.
"""

import copy
import json
import random

_MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    "progressToken": 7,
}


def _request(method, params=None, ident=1):
    return {"jsonrpc": "2.0", "id": ident, "method": method, **({} if params is None else {"params": params})}


def _call(tool, **arguments):
    return _request("tools/call", {"name": tool, "arguments": arguments}, ident=f"call of {tool}")


_MESSAGES = [
    _request(
        "initialize",
        {
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}, "roots": {"listChanged": True}},
            "clientInfo": {"name": "mutant", "title": "Mut\u00e4nt \U0001f642", "version": "1"},
        },
    ),
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    _request("server/discover", {"_meta": _MODERN}, ident=-9007199254740991),
    _request("ping"),
    _request("tools/list", {"cursor": "abc", "_meta": _MODERN}, ident="x"),
    _request("resources/list"),
    _request("resources/templates/list"),
    _request("resources/read", {"uri": "pykeep://sessions/0123456789abcdef/files/a%20b/../c.csv"}),
    _request("logging/setLevel", {"level": "debug"}),
    _request("completion/complete", {"ref": {"type": "ref/resource", "uri": "pykeep://"}, "argument": {}}),
    _call("run_python"),
    _call("run_python", code=["1+1"], wait="soon", timeout=1e308),
    _call("wait_execution", execution="0123456789abcdef-1", wait=0.001),
    _call("interrupt_execution", session="none", restart=True),
    _call("download_file", path="../../etc/passwd", session="none"),
    _call("upload_file", name="a/\x7f\u202e.txt", text="x", base64="eA==", session="none"),
    _call("list_files", path="/", session="none"),
    _call("list_sessions"),
    _call("close_session", session="0123456789abcdef0123456789abcdef"),
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "no more"}},
    {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 7, "progress": 0.5}},
    {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept", "content": {"input": "yes"}}},
    {"jsonrpc": "2.0", "id": "x", "error": {"code": -32601, "message": "not offered", "data": None}},
    [_request("ping", ident=2), _request("tools/list", ident=3)],
]
MESSAGES = [json.dumps(message).encode() for message in _MESSAGES] + [
    json.dumps(message, ensure_ascii=False).encode() for message in _MESSAGES[:1]
]

_PIECES = [
    b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\\u0000", b"\\ud800", b"null", b"true", b"-0", b"1e999",
    b"18446744073709551616", b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"[" * 70, b'{"a":' * 70,
    b'"id":null,', b'"id":1.5,', b'"method":"ping",', b'"jsonrpc":"1.0",', b"\r", b" " * 300, b"A" * 3000,
]  # fmt: skip


_VALUES = [
    None, True, -1, 0.5, 1e308, 2**63, -(2**63), "", "\x00", "\ud800", "x" * 3000, "pykeep://sessions/%zz", [],
    [[]], {}, {"": None}, {"_meta": {"progressToken": {}}}, ["ping"], "2026-07-28", "tools/call", "initialize",
]  # fmt: skip


def _mutate_value(value, chance: random.Random):
    """One member of an object or array, however deep, becomes something else, goes, or comes again."""
    if not isinstance(value, (dict, list)) or not value or chance.random() < 0.05:
        return copy.deepcopy(chance.choice(_VALUES))
    places = list(value) if isinstance(value, dict) else list(range(len(value)))
    weights = [6 if isinstance(value[place], (dict, list)) else 1 for place in places]
    (place,) = chance.choices(places, weights)  # most of what there is to decode lies deeper
    kind = chance.randrange(8)
    if kind == 0:
        del value[place]
    elif kind == 1 and isinstance(value, dict):
        value[str(chance.choice(_VALUES))] = value.pop(place)
    elif kind == 2 and isinstance(value, list):
        value.append(copy.deepcopy(value[place]))
    else:
        value[place] = _mutate_value(value[place], chance)
    return value


def _mutate(line: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(line) + 1)
    kind = chance.randrange(6)
    if kind == 0 and at < len(line):
        line[at] = chance.randrange(256)
    elif kind == 1:
        del line[at : at + chance.randrange(1, 12)]
    elif kind == 2:
        line[at:at] = chance.choice(_PIECES)
    elif kind == 3:  # a piece of itself, elsewhere
        start = chance.randrange(len(line) + 1)
        line[at:at] = line[start : start + chance.randrange(1, 60)]
    elif kind == 4:  # the head of one message and the tail of another
        other = chance.choice(MESSAGES)
        line[at:] = other[chance.randrange(len(other)) :]
    else:
        del line[at:]


def mutated_lines(seed: int):
    """Lines without end, each with its newline; some are still valid messages."""
    chance = random.Random(seed)
    while True:
        message = chance.choice(MESSAGES)
        times = chance.choice((1, 1, 1, 2, 3, 8))
        if chance.random() < 0.5:  # still JSON, so that it gets further in
            value = json.loads(message)
            for _ in range(times):
                value = _mutate_value(value, chance)
            line = bytearray(json.dumps(value).encode())
        else:
            line = bytearray(message)
            for _ in range(times):
                _mutate(line, chance)
        yield bytes(line).replace(b"\n", b" ") + b"\n"
