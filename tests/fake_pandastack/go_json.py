"""JSON and errors as Go's net/http and encoding/json write them."""

import json
import re
from datetime import UTC, datetime

from aiohttp import web

ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
STRUCT_NAMES = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}


class Failure(Exception):
    """An answer with {"error": message}; `more`: further keys, headers: further headers."""

    def __init__(self, status, message, more=None, headers=None):
        super().__init__(message)
        self.status, self.message, self.more, self.headers = status, message, more or {}, headers or {}

    def answer(self):
        return answer(by_key({"error": self.message} | self.more), self.status, headers=self.headers)


def quoted(text):
    data = json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)
    data = (
        data.replace("\\b", "\\u0008").replace("\\f", "\\u000c") if "\\b" in data or "\\f" in data else data
    )
    return re.sub("[<>&\u2028\u2029]", lambda found: ESCAPED[found[0]], data)


def number(value):
    """A float64, the only number that a Go `any` holds."""
    value = float(value)
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        text = f"{value:.0f}" if value == int(value) else repr(value)
        if "e" in text:
            digits = -int(text.split("e")[1]) + len(text.split("e")[0].replace(".", "").lstrip("-"))
            text = f"{value:.{digits}f}".rstrip("0")
        return text
    mantissa, exponent = repr(value).split("e")
    return f"{mantissa.removesuffix('.0')}e{exponent[0]}{exponent[1:].lstrip('0')}"


def encode(value):
    """A dict is a struct: its keys stay in order. by_key() makes a map of it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return number(value)
        case str():
            return quoted(value)
        case dict():
            return "{" + ",".join(f"{quoted(name)}:{encode(each)}" for name, each in value.items()) + "}"
        case _:
            return "[" + ",".join(map(encode, value)) + "]"


def by_key(value):
    """What was a Go map: sorted, and so are the maps in it."""
    if isinstance(value, dict):
        return {name: by_key(value[name]) for name in sorted(value)}
    return [by_key(each) for each in value] if isinstance(value, list) else value


def as_any(value):
    """What went through Go's `any` on its way: maps, and numbers that lose digits above 2^53."""
    if isinstance(value, dict):
        return {name: as_any(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [as_any(each) for each in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def answer(value, status=200, newline=True, headers=None):
    body = (encode(value) + ("\n" if newline else "")).encode()
    return web.Response(
        status=status, body=body, headers={"Content-Type": "application/json"} | (headers or {})
    )


def text(status, body, headers=None):
    """http.Error and the mux."""
    more = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"} | (
        headers or {}
    )
    return web.Response(status=status, body=body.encode(), headers=more)


def not_found():
    return text(404, "404 page not found\n")


def time_nanoseconds(nanoseconds):
    """RFC3339Nano: without the zeros at its end."""
    whole = datetime.fromtimestamp(nanoseconds // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f"{nanoseconds % 10**9:09}".rstrip("0")
    return f"{whole}.{fraction}Z" if fraction else f"{whole}Z"


def time_seconds(nanoseconds):
    return time_nanoseconds(nanoseconds // 10**9 * 10**9)


def duration(milliseconds):
    """time.Duration's text: 1.5s, 1m0s, 250ms."""
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest / 1000:g}s"
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + seconds


def character(text, at):
    if at >= len(text):
        return None
    return "'\\\\''" if text[at] == "'" else f"'{text[at]}'"


def decoding_error(data):
    """What json.Decoder says of a text that is not JSON; None if it is."""
    if not data.strip():
        return "EOF"
    text = data.decode("utf-8", "replace")
    try:
        json.JSONDecoder(parse_constant=refuse_constant).raw_decode(text.lstrip())
        return None
    except Constant as constant:
        return f"invalid character '{constant.args[0].lstrip('-')[0]}' looking for beginning of value"
    except json.JSONDecodeError as error:
        at = error.pos + len(text) - len(text.lstrip())
        found = character(text, at)
        if found is None or "Unterminated" in error.msg:
            return "unexpected EOF"
        if "property name" in error.msg:
            return f"invalid character {found} looking for beginning of object key string"
        if "delimiter" in error.msg:
            where = "after object key" if "':'" in error.msg else "after object key:value pair"
            return f"invalid character {found} {where}"
        return f"invalid character {found} looking for beginning of value"


class Constant(Exception):
    """NaN and Infinity, which Python reads and Go does not."""


def refuse_constant(name):
    raise Constant(name)


async def struct(request, name, fields, limit=None, may_be_empty=False):
    """The request's body as the Go struct `name`; `fields`: name -> type (or a tuple of them).

    Unknown fields are ignored; absent and null ones are not in the result.
    """
    data = (await request.read())[:limit]
    if may_be_empty and not data.strip():
        return {}
    wrong = decoding_error(data)
    if wrong:
        raise Failure(400, wrong)
    value, _ = json.JSONDecoder().raw_decode(data.decode("utf-8", "replace").lstrip())
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Failure(400, f"json: cannot unmarshal {STRUCT_NAMES[type(value)]} into Go value of type {name}")
    result = {}
    for field, kind in fields.items():
        given = value.get(field)
        if given is None:
            continue
        if type(given) is not kind:
            go = {int: "int", str: "string", bool: "bool", dict: "map[string]string", list: "[]"}[kind]
            what = (
                f"number {given}" if kind is int and isinstance(given, float) else STRUCT_NAMES[type(given)]
            )
            raise Failure(
                400, f"json: cannot unmarshal {what} into Go struct field {name}.{field} of type {go}"
            )
        if kind is dict and not all(isinstance(each, str) for each in given.values()):
            wrong = next(STRUCT_NAMES[type(each)] for each in given.values() if not isinstance(each, str))
            raise Failure(
                400, f"json: cannot unmarshal {wrong} into Go struct field {name}.{field} of type string"
            )
        result[field] = given
    return result
