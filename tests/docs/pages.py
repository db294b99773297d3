"""The commands of the documentation, as they stand there."""

import pathlib
import re
import shutil
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "packaging/README.md",
    "examples/README.md",
    *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md")),
]
# First words of a line that make it a command. In indented blocks there are also results and formats.
PROGRAMS = """apt-get claude curl docker echo install npm npx nginx pip podman printf python3 runuser sudo systemctl
              tar useradd uv uvx""".split()


@dataclass(frozen=True)
class Command:
    page: str
    line: int
    text: str

    def __str__(self):
        return f"{self.page}:{self.line}: {self.text}"


def code_lines(text: str):
    """(number, line) of what is in ```sh blocks or indented by four blanks."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        if mark := re.match(r"\s*```(\w*)", line):
            fence = mark[1] if fence is None else None
        elif fence == "sh" or (fence is None and line.startswith("    ")):
            yield number, line.strip()


def joined(lines):
    """Lines that end in a backslash go on in the next one."""
    held, first = "", 0
    for number, line in lines:
        first = first if held else number
        held += line
        if held.endswith("\\"):
            held = held[:-1]
            continue
        yield first, held
        held = ""


def first_word(text: str) -> str:
    """Behind assignments: NAME=value."""
    return re.sub(r"^(?:[A-Z_]+=\S* )+", "", text).split(" ")[0]


def is_pykeep(text: str) -> bool:
    return bool(re.fullmatch(r"([\w./-]+/)?pykeep", first_word(text)))


def is_command(text: str) -> bool:
    word = first_word(text)
    if "──" in text:  # a drawing
        return False
    return is_pykeep(text) or word in PROGRAMS or word == "./dev" or word.startswith("own/bin/")


def without_comment(text: str) -> str:
    return re.sub(r"\s+# .*$", "", text)


def commands() -> list[Command]:
    found = []
    for page in PAGES:
        for number, line in joined(code_lines((ROOT / page).read_text(encoding="utf-8"))):
            if is_command(line):
                found.append(Command(page, number, without_comment(line)))
    return found


def overlooked() -> list[str]:
    """Lines that begin with a program of this machine, and yet are not taken for commands."""
    lines = []
    for page in PAGES:
        for number, line in joined(code_lines((ROOT / page).read_text(encoding="utf-8"))):
            word = first_word(line)
            if not is_command(line) and re.fullmatch(r"[a-z][\w.-]+", word) and shutil.which(word):
                lines.append(f"{page}:{number}: {line}")
    return lines


def inline_commands() -> list[Command]:
    """`pykeep …` and `./dev …` in running text."""
    found = []
    for page in PAGES:
        for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
            if not line.startswith("    "):
                for text in re.findall(r"`((?:build/release/pykeep|pykeep|\./dev) [a-z-][^`]*)`", line):
                    found.append(Command(page, number, text))
    return found
