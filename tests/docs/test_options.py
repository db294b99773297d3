"""docs/options.md has every option and command of `pykeep --help`, and nothing that is not there."""

import pathlib
import re
import subprocess

import pytest

PAGE = (pathlib.Path(__file__).parents[2] / "docs/options.md").read_text(encoding="utf-8")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
# The page speaks of them in passing: what others have, and what is said of all commands alike.
NOT_OURS = {"--help", "--version"}


def help_of(binary, *command) -> str:
    done = subprocess.run(
        [binary, *command, "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def commands_of(text: str) -> list[str]:
    _, _, listed = text.partition("Subcommands:\n")
    return re.findall(r"^  ([a-z-]+)", listed, re.MULTILINE)


def options_of(text: str) -> set[str]:
    """Those that a line of the help begins with."""
    lines = re.findall(r"^  (-.*)$", text, re.MULTILINE)
    return {option for line in lines for option in OPTION.findall(line.split("  ")[0])} - NOT_OURS


@pytest.fixture(scope="module")
def helps(binary) -> dict:
    """Command -> its help; "" is the program itself."""
    found = {"": help_of(binary)}
    for command in commands_of(found[""]):
        found[command] = help_of(binary, command)
        for inner in commands_of(found[command]):
            found[f"{command} {inner}"] = help_of(binary, command, inner)
    return found


def test_every_command_is_there(helps):
    assert len(helps) > 10
    words = {command: re.escape(command) for command in helps if command}
    missing = [
        name for name, word in words.items() if not re.search(rf"pykeep {word}\b|`pykeep {word}", PAGE)
    ]
    assert not missing


def test_every_option_is_there(helps):
    described = set(OPTION.findall(PAGE))
    missing = {command: options_of(text) - described for command, text in helps.items()}
    assert not {command: options for command, options in missing.items() if options}


def test_nothing_is_there_that_the_program_does_not_have(helps):
    known = {option for text in helps.values() for option in options_of(text)} | NOT_OURS
    assert not set(OPTION.findall(PAGE)) - known


def rows():
    """(option, default) of the tables. A row may have several: "`--processes`, `--open-files` | 256, 1024"."""
    for cells in re.findall(r"^\| (`-(?:[^|]|\\\|)*) \| ((?:[^|]|\\\|)*) \|", PAGE, re.MULTILINE):
        options = OPTION.findall(cells[0])
        yield from zip(options, cells[1].split(", ") if len(options) > 1 else cells[1:])


def test_defaults_are_the_programs(helps):
    """Those of the tables that are numbers, sizes or words."""
    wrong = []
    for option, said in rows():
        line = re.compile(rf"^  {option}(?: [^=\n]*)?=(\S+)", re.MULTILINE)
        defaults = [default for text in helps.values() for default in line.findall(text)]
        if defaults and not any(same(default, said) for default in defaults):
            wrong.append((option, said, defaults))
    assert not wrong


def same(has: str, said: str) -> bool:
    said = said.strip("`").partition(" ")[0].rstrip(":").strip("`")
    if size := re.fullmatch(r"(\d+)MiB", has):
        number = re.fullmatch(r"(\d+)(MiB|GiB)", said)
        return bool(number) and int(number[1]) << (10 * (number[2] == "GiB")) == int(size[1])
    return has in ("[]", said)
