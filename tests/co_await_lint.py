#!/usr/bin/env python3
"""Finds awaited expressions of the forms that g++ 12 miscompiles (CONTRIBUTING.md, "Bind first").

In the same full expression as a co_await there may be no aggregate or initializer list, no lambda and
no conditional operator: name such a value on the line before, then await. ASan, in the default preset,
is the net below this one.
"""

import pathlib
import re
import sys

FOLDERS = ["async", "schemas", "mcp", "transport", "sandbox", "tools", "app", "tests"]
OPENING, CLOSING = "([{", ")]}"
# Replaced by blanks, so that offsets stay: comments, then string and character literals.
IGNORED = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'""",
    re.DOTALL,
)


def blank(match: re.Match) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def operand(code: str, start: int) -> str:
    """What is awaited: up to the end of the statement, argument or condition."""
    depth = 0
    for at in range(start, len(code)):
        if code[at] in OPENING:
            depth += 1
        elif code[at] in CLOSING:
            depth -= 1
        if depth < 0 or (depth == 0 and code[at] in ";,"):
            return code[start:at]
    return code[start:]


def before(code: str, start: int) -> str:
    """The same full expression to the left of the co_await, from an enclosing brace of its own on."""
    depth = 0
    for at in range(start - 1, -1, -1):
        if code[at] in ";}" and depth <= 0:
            return code[at + 1 : start]
        if code[at] in CLOSING:
            depth += 1
        elif code[at] in OPENING:
            depth -= 1
        if code[at] == "{" and depth < 0:
            # clang-format writes a block's brace after a blank, an initializer's without one.
            is_block = at == 0 or code[at - 1] in " \n" and code[:at].rstrip()[-1:] not in ("=", ",", "(")
            return code[at + 1 : start] if is_block else code[at:start]
    return code[:start]


def problem(code: str, start: int, end: int) -> str | None:
    awaited = operand(code, end)
    if "{" in awaited:
        return "an aggregate, an initializer list or a lambda inside an awaited expression"
    if "?" in awaited or "?" in before(code, start):
        return "a conditional operator around or inside an awaited expression"
    if before(code, start).startswith("{"):
        return "an awaited value inside an initializer"
    return None


def main() -> int:
    found = 0
    files = [f for folder in FOLDERS for f in sorted(pathlib.Path(folder).rglob("*.?pp"))]
    for file in files:
        code = IGNORED.sub(blank, file.read_text(encoding="utf-8"))
        for match in re.finditer(r"\bco_await\b", code):
            what = problem(code, match.start(), match.end())
            if what:
                line = code.count("\n", 0, match.start()) + 1
                print(f"{file}:{line}: {what}; name the value first, then await")
                found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
