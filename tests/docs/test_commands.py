"""Every command of README.md, docs/, packaging/README.md and examples/README.md: run here as it stands, or in elsewhere.py
with the reason and, where there is one, the test that runs it. `./dev X` is looked for in ./dev's help."""

import os
import re
import select
import shlex
import signal
import subprocess
import sys
import time

import pytest
from elsewhere import ELSEWHERE, entry_for
from mcp_client import Client
from pages import ROOT, commands, inline_commands, is_pykeep, overlooked

COMMANDS = commands()
PYKEEP = [command for command in COMMANDS if is_pykeep(command.text) and not entry_for(command.text)]
QUOTED = re.compile(r"'[^']*'")
SYNOPSES = [each for each in PYKEEP if re.search(r"[\[|]| … |…$", QUOTED.sub("", each.text))]
RUN = [command for command in PYKEEP if command not in SYNOPSES]
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
LIMIT = 180


def test_nothing_is_overlooked():
    assert len(COMMANDS) > 60 and len(RUN) > 20
    assert not overlooked()


def test_what_is_not_run_here_has_its_reason_and_its_test():
    for command in COMMANDS:
        if command not in PYKEEP and not command.text.startswith("./dev"):
            assert entry_for(command.text), f"{command}: run it here, or say in elsewhere.py why not"
    for entry in ELSEWHERE:
        assert entry.why and any(command.text.startswith(entry.begins) for command in COMMANDS), entry
        assert not entry.instead or (ROOT / entry.instead).exists(), entry


def test_dev_has_the_commands_that_are_named():
    told = subprocess.run(["./dev", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    named = [each for each in COMMANDS + inline_commands() if each.text.startswith("./dev ")]
    assert len(named) > 10
    for command in named:
        word = command.text.split()[1]
        assert re.search(rf"^  \./dev {re.escape(word)}\b", told, re.MULTILINE), command


# ---- options of what cannot be run as it stands


def help_of(binary, text) -> str:
    """Of pykeep and of the command in `text`."""
    done = [subprocess.run([binary, "--help"], capture_output=True, text=True, timeout=LIMIT).stdout]
    words = re.findall(r"(?<=\s)[a-z][a-z-]+(?=\s|$)", text.split(" -- ")[0])
    known = re.findall(r"^  ([a-z-]+)", done[0].partition("Subcommands:\n")[2], re.MULTILINE)
    path = []
    for word in words:
        if word not in known:
            continue
        path.append(word)
        done.append(
            subprocess.run([binary, *path, "--help"], capture_output=True, text=True, timeout=LIMIT).stdout
        )
        known = re.findall(r"^  ([a-z-]+)", done[-1].partition("Subcommands:\n")[2], re.MULTILINE)
    return "\n".join(done)


@pytest.fixture(scope="module")
def helps(binary):
    found = {}

    def look(text):
        key = tuple(re.findall(r"(?<=\s)[a-z][a-z-]+(?=\s|$)", text.split(" -- ")[0]))
        if key not in found:
            found[key] = help_of(binary, text)
        return found[key]

    return look


def test_synopses_and_commands_in_the_text_name_options_that_there_are(helps):
    assert SYNOPSES
    named = SYNOPSES + [each for each in inline_commands() if not each.text.startswith("./dev")]
    for command in named:
        told = helps(command.text)
        for option in OPTION.findall(command.text.split(" -- ")[0]):
            assert option in OPTION.findall(told), f"{command}: no {option}"
        word = command.text.split()[1]
        if re.fullmatch(r"[a-z][a-z-]+", word):
            assert re.search(rf"^  {word} ", told, re.MULTILINE), f"{command}: no command {word}"


# ---- what can be run as it stands


class Place:
    """A home where the placeholders of a page exist."""

    def __init__(self, binary, directory, cloud):
        self.binary, self.directory, self.cloud = binary, directory, cloud
        self.ids = None
        (directory / "my_script.py").write_text("print(6 * 7)\n")
        (directory / "data").mkdir()
        self.environment = {
            **os.environ,
            "HOME": str(directory),
            "PYKEEP_STATE_DIR": str(directory / "state"),
            "PYKEEP_LISTEN": "127.0.0.1:0",
        }
        for name in ("PANDASTACK_API", "PANDASTACK_API_KEY", "PANDASTACK_TOKEN", "XDG_CONFIG_HOME"):
            self.environment.pop(name, None)

    def words_of(self, text):
        """(environment, arguments) with everything in place that the reader is to put there."""
        words = shlex.split(text.replace("/home/me/data", str(self.directory / "data")))
        environment = dict(self.environment)
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            environment[name] = value
        arguments = [self.id_for(word) if word in ("ID", "HANDLE") else word for word in words[1:]]
        if "pandastack" in arguments:
            environment |= {"PANDASTACK_API": self.cloud(), "PANDASTACK_API_KEY": "pds_local_dev_token"}
            environment.pop("PYKEEP_TEMPLATE", None)
        return environment, arguments

    def id_for(self, word):
        if not self.ids:
            self.ids = self.make_session()
        return self.ids[word]

    def make_session(self):
        with Client([self.binary], env=self.environment, cwd=self.directory) as client:
            client.connect()
            made = client.call_tool("create_session", {"name": "kept"}).text
            client.call_tool("run_python", {"code": "x = 1", "session": "kept"})
            taken = client.call_tool("snapshot", {"session": "kept"}).text
        return {
            "HANDLE": re.search(r'session="(\w+)"', made)[1],
            "ID": re.search(r"Snapshot (\w+)", taken)[1],
        }

    def run(self, text):
        environment, arguments = self.words_of(text)
        if arguments[-1:] == ["http"]:
            return self.serve(environment, arguments)
        if not arguments:
            return self.speak(environment)
        done = subprocess.run(
            [self.binary, *arguments],
            env=environment,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def serve(self, environment, arguments):
        """Starts, becomes ready, ends when it is told to."""
        server = subprocess.Popen(
            [self.binary, *arguments], env=environment, cwd=self.directory, stderr=subprocess.PIPE, text=True
        )
        try:
            said, _, _ = select.select([server.stderr], [], [], LIMIT)
            line = server.stderr.readline() if said else ""
            assert line.startswith("pykeep: serving MCP at http://127.0.0.1:"), line
            server.send_signal(signal.SIGTERM)
            assert server.wait(60) == 0
        finally:
            server.kill()
            server.wait()

    def speak(self, environment):
        with Client([self.binary], env=environment, cwd=self.directory) as client:
            assert client.connect()["serverInfo"]["name"] == "pykeep"


@pytest.fixture(scope="module")
def cloud():
    """The address of a stand-in for PandaStack, started when it is first asked for."""
    started = []

    def address():
        if not started:
            pytest.importorskip("aiohttp")
            fake = [sys.executable, str(ROOT / "tests/fake_pandastack"), "0", "--until", str(os.getpid())]
            started.append(subprocess.Popen(fake, stdout=subprocess.PIPE, text=True))
            line = started[0].stdout.readline()
            assert line.startswith("fake pandastack ready on "), line
            started.append(line.split()[-1])
        return started[1]

    yield address
    if started:
        started[0].terminate()
        started[0].wait(60)


@pytest.fixture(scope="module")
def sandboxes_work(binary):
    done = subprocess.run([binary, "doctor"], capture_output=True, text=True, timeout=LIMIT)
    if done.returncode != 0:
        pytest.skip("no sandbox can be started on this machine: " + done.stdout[-300:])


PAGES_WITH_COMMANDS = list(dict.fromkeys(command.page for command in RUN))


@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS)
def test_a_pages_commands_do_what_they_are_to(page, binary, tmp_path, cloud, sandboxes_work):
    """In their order, in one home, each once."""
    place = Place(binary, tmp_path, cloud)
    failed = []
    for command in {each.text: each for each in RUN if each.page == page}.values():
        began = time.monotonic()
        try:
            place.run(command.text)
        except (AssertionError, subprocess.TimeoutExpired) as failure:
            failed.append(f"{command}\n{failure}")
        print(f"{time.monotonic() - began:5.1f} s  {command}")
    assert not failed, "\n\n".join(failed)
