"""A terminal with a command and what it said, as a page."""

import html
import re

# What gets a colour, by how its line begins.
COLOURS = (
    ("good", r"achieved|ok    "),
    ("weak", r"weaker"),
    ("bad", r"missing|NOT OK|Traceback.*|\w+Error:.*"),
    ("head", r"-- .*"),
    ("faint", r"   [>⋮].*|   \(.*\)|.*\[New session.*|.*\[(?:Session|The kernel) .*"),
)

STYLE = """
body { margin: 0; background: #12161d; }
pre { margin: 0; padding: 18px 22px 20px; color: #d7dde6; white-space: pre-wrap; overflow-wrap: anywhere;
      font: 13px/1.5 "DejaVu Sans Mono", monospace; }
.prompt { color: #7fb3f5; } .command { color: #ffffff; font-weight: bold; }
.good { color: #7fce9b; } .weak { color: #e6c06a; } .bad { color: #f28b82; }
.head { color: #ffffff; font-weight: bold; } .faint { color: #8d98a8; }
"""


def document(command, text):
    lines = "\n".join(map(coloured, text.rstrip().split("\n")))
    shown = f'<span class="prompt">$</span> <span class="command">{html.escape(command)}</span>'
    return f"<!doctype html><meta charset=utf-8><style>{STYLE}</style><pre>{shown}\n{lines}</pre>"


def coloured(line):
    for name, begins in COLOURS:
        if found := re.match(rf"(?:   \| )?(?:{begins})", line):
            rest = html.escape(line[found.end() :])
            return f'<span class="{name}">{html.escape(found[0])}</span>{rest}'
    return html.escape(line)
