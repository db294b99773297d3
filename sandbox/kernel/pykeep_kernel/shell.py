"""The IPython shell of the kernel: IPython's own, with our displays, errors, magics and history."""

import bdb
import subprocess
import sys

from IPython.core.compilerop import CachingCompiler
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

from pykeep_kernel import formatting, streams, tracebacks

_KEPT_SOURCES = 1000
_DEBUGGER_ENDED = (
    "(the debugger had no more commands and ended the cell; "
    "pass commands in the `stdin` argument of run_python)\n"
)


class Compiler(CachingCompiler):
    """Compiles cells under names that tracebacks, warnings and inspect can show as they are."""

    def get_code_name(self, raw_code, transformed_code, number):
        return tracebacks.CELL_NAME.format(number)


class History(HistoryManager):
    """Sources in memory only: no database, no thread, no `_i12` variables."""

    def store_inputs(self, line_num, source, source_raw=None):
        source = source.rstrip("\n")
        self.input_hist_parsed.append(source)
        self.input_hist_raw.append(source if source_raw is None else source_raw.rstrip("\n"))
        if len(self.input_hist_parsed) > _KEPT_SOURCES:
            # Emptied rather than removed: the index is the cell's number.
            old = len(self.input_hist_parsed) - _KEPT_SOURCES
            self.input_hist_parsed[old] = self.input_hist_raw[old] = ""


class Shell(InteractiveShell):
    compiler_class = Type(Compiler)
    displayhook_class = Type(formatting.Hook)
    display_pub_class = Type(formatting.Publisher)

    repr_errors = None  # collects errors of __repr__ and friends while a value is formatted
    cell_error = None  # the exception of the running cell, as it was last shown
    _loop = None  # of cells with a top-level await
    _interrupted = False

    def init_history(self):
        self.history_manager = History(shell=self, parent=self)
        self.configurables.append(self.history_manager)

    def init_display_formatter(self):
        self.display_formatter = formatting.Formatter(parent=self)
        self.configurables.append(self.display_formatter)

    def init_virtualenv(self):
        pass  # the interpreter's own environment is the right one

    def init_logger(self):
        super().init_logger()
        self.logger.log = lambda *_arguments, **_options: None

    def enable_gui(self, gui=None):
        """%gui: there is no display to have one on."""

    def enable_matplotlib(self, gui=None):
        """%matplotlib: figures are always shown inline."""
        import matplotlib.pyplot  # noqa: F401

        return "inline", "module://pykeep"

    def init_io(self):
        super().init_io()
        self.loop_runner = self._run_loop

    def _run_loop(self, coroutine):
        """Runs a cell with a top-level await; tasks it leaves go on in the next such cell."""
        import asyncio

        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        task = self._loop.create_task(coroutine)
        self._interrupted = False
        try:
            return self._loop.run_until_complete(task)
        except KeyboardInterrupt:
            # It came while the loop was waiting: pass it on to the cell, which is still there.
            self._interrupted = True
            task.cancel()
            return self._loop.run_until_complete(task)

    async def run_code(self, code_obj, result=None, *, async_=False):
        try:
            if async_:
                await eval(code_obj, self.user_global_ns, self.user_ns)
            else:
                exec(code_obj, self.user_global_ns, self.user_ns)
        except bdb.BdbQuit:
            streams.write_error(_DEBUGGER_ENDED)
        except BaseException as error:
            if self._interrupted and type(error).__name__ == "CancelledError":
                error = KeyboardInterrupt().with_traceback(error.__traceback__)
            if result is not None:
                result.error_in_exec = error
            self._note(error)
            return True
        return False

    def showtraceback(self, exc_tuple=None, *_arguments, **_options):
        error = exc_tuple[1] if exc_tuple else sys.exc_info()[1]
        if error is not None:
            self._note(error)

    def showsyntaxerror(self, *_arguments, **_options):
        self.showtraceback()

    def _format_exception_for_storage(self, *_arguments, **_options):
        return []

    def _note(self, error):
        if self.repr_errors is not None:
            self.repr_errors.append(error)
            return
        tracebacks.remember(error)
        self.cell_error = error

    def system(self, command):
        """`!command`: output straight to our descriptors, in order."""
        streams.flush()
        command = self.var_expand(command, depth=1)
        code = subprocess.call(command, shell=True, stdin=subprocess.DEVNULL)
        self.user_ns["_exit_code"] = code
        if "pip" in command:
            self.packages.refresh()
        if code:
            sys.stderr.write(f"(exit code {code})\n")

    system_piped = system_raw = system


def create(link_displays, packages):
    configuration = Config()
    configuration.HistoryManager.enabled = False
    configuration.InteractiveShell.colors = "NoColor"
    configuration.InteractiveShell.separate_in = ""
    shell = Shell.instance(config=configuration)
    shell.displayhook.displays = link_displays
    shell.display_pub.displays = link_displays
    shell.packages = packages
    return shell
