"""input(), getpass and sys.stdin: the given text, else a question to the user, else an error."""

import builtins
import io
import sys
import threading


class StdinNotAvailable(EOFError):
    """Nobody can answer. An EOFError, so that loops reading to the end of input do end."""

    __module__ = "builtins"  # tracebacks then give its bare name


_ADVICE = (
    "{} needs input, and {}. "
    "Pass the whole text in the `stdin` argument of run_python, one line an answer."
)


class Stdin(io.TextIOWrapper):
    """sys.stdin of one cell: holds the text that came with it, then is at its end."""

    def __init__(self, text):
        super().__init__(io.BytesIO(text.encode("utf-8", "pykeep")), encoding="utf-8")
        self.mode = "r"

    def fileno(self):
        return 0  # /dev/null, for subprocess.run(..., stdin=sys.stdin)

    def close(self):
        pass  # site's exit() closes sys.stdin


class Asker:
    """Answers input() for the cell that runs."""

    def __init__(self, link):
        self._link = link
        self._cell = 0
        self._can_ask = False
        self._given = False

    def install(self):
        builtins.input = self.input

    def begin(self, cell, text, can_ask):
        self._cell = cell
        self._can_ask = can_ask
        self._given = text is not None
        sys.stdin = Stdin(text or "")
        builtins.input = self.input

    def input(self, prompt="", /):
        """Read a line, as the built-in function does."""
        return self._ask("input()", str(prompt), password=False)

    def getpass(self, prompt="Password: ", stream=None, **_options):
        """Read a password, as getpass.getpass does."""
        return self._ask("getpass()", str(prompt), password=True)

    def _ask(self, what, prompt, password):
        line = sys.stdin.readline()
        if line:
            if not password:
                sys.stdout.write(prompt)
            return line[:-1] if line.endswith("\n") else line
        if self._given and not self._can_ask:
            raise StdinNotAvailable(_ADVICE.format(what, "the given stdin text is used up"))
        if not self._can_ask or self._link.dead:
            raise StdinNotAvailable(_ADVICE.format(what, "there is no one to ask"))
        if threading.current_thread() is not threading.main_thread():
            raise StdinNotAvailable(_ADVICE.format(what, "only the main thread can ask"))
        return self._request(what, prompt, password)

    def _request(self, what, prompt, password):
        self._link.send(
            {"ev": "input_request", "id": self._cell, "prompt": prompt[:4000], "password": password}
        )
        while True:
            frame = self._link.receive()
            if frame is None or frame.get("op") == "shutdown":
                raise SystemExit
            if frame.get("op") == "reply" and frame.get("id") == self._cell:
                break
        value = frame.get("value")
        if value is None:
            self._can_ask = False
            raise StdinNotAvailable(_ADVICE.format(what, "the user gave no answer"))
        sys.stdout.write(f"{prompt}{'' if password else value}\n")
        return value
