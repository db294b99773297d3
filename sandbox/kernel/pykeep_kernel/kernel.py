"""The kernel: puts its parts together and runs one cell after the other (docs/kernel-link.md)."""

import builtins
import functools
import os
import sys

from pykeep_kernel import imports, link, streams, tracebacks
from pykeep_kernel.interrupts import Interrupts

_SHUTDOWN_SECONDS = 0.8
# Without those that IPython itself takes away and puts back.
_BUILTINS = {name: value for name, value in vars(builtins).items() if name not in ("exit", "quit")}


class Kernel:
    def __init__(self):
        import faulthandler

        faulthandler.enable(file=2, all_threads=True)
        self.workspace = workspace = os.environ.get("PYKEEP_WORKSPACE") or os.getcwd()
        streams.install()
        tracebacks.install()
        self.interrupts = Interrupts()
        self.interrupts.install()
        self.link = link.connect(self.interrupts, streams.flush_all)
        _keep_terminal_codes_away()
        # Arrow's own allocator reserves 1 GiB with the first string column; RLIMIT_DATA counts it.
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")

        from pykeep_kernel import displays, magics, packages, processes, resume, shell, stdin

        self.displays = displays.Displays(self.link, workspace)
        self.packages = packages.Packages(workspace)
        self.packages.install()
        self.asker = stdin.Asker(self.link)
        self.asker.begin(0, None, False)
        self.shell = shell.create(self.displays, self.packages)
        magics.install(self.shell, self.packages)
        processes.install(self.link, self.shell)
        self._end_of_cell = displays.end_of_cell
        self._exit_notice = magics.exit_notice
        self._end_forked_child = processes.end_forked_child
        self.resume = functools.partial(resume.resume, self)
        _support_libraries(self.asker)
        sys.argv = [""]
        sys.path.insert(0, "")  # modules in the working directory can be imported

    def serve(self):
        self._greet()
        while True:
            frame = self.link.receive()
            if frame is None or frame["op"] == "shutdown":
                return
            if frame["op"] == "execute":
                self.execute(frame)
            if frame["op"] == "resumed":
                self.resume(frame["reason"], frame["environment"])
                self._greet()

    def _greet(self):
        import IPython

        version = ".".join(map(str, sys.version_info[:3]))
        ready = {"ev": "ready", "python": version, "ipython": IPython.__version__}
        self.link.send({**ready, "executions": self.shell.execution_count - 1})

    def execute(self, frame):
        cell = frame["id"]
        shell = self.shell
        count = shell.execution_count
        streams.restore()
        self.interrupts.install()
        shell.cell_error = None
        self.asker.begin(cell, frame.get("stdin"), bool(frame.get("can_ask")))
        self.link.send({"ev": "started", "id": cell, "execution_count": count})
        self.displays.begin(cell, count)
        try:
            self._run(frame["code"])
        except KeyboardInterrupt as interrupt:  # between the cell's end and this line
            self.interrupts.cell_ended()
            shell.cell_error = shell.cell_error or interrupt
        if not vars(builtins).keys() >= _BUILTINS.keys():
            _restore_builtins()
        if self.link.dead:
            self._report_on_stderr()
            self._end_forked_child()
        self._report(cell)
        self.displays.end()
        status = "ok" if shell.cell_error is None else "error"
        self.link.send({"ev": "done", "id": cell, "status": status, "execution_count": count})

    def _run(self, code):
        shell = self.shell
        try:
            self.interrupts.running = True
            try:
                if "\0" in code:  # IPython would warn of a coroutine of its own first
                    raise SyntaxError("source code string cannot contain null bytes")
                shell.run_cell(code, store_history=True)
            except BaseException as error:  # from IPython itself, or a late interrupt
                shell.cell_error = shell.cell_error or error
            try:
                self._end_of_cell()
            except BaseException as error:
                shell.cell_error = shell.cell_error or error
        finally:
            self.interrupts.cell_ended()

    def _report(self, cell):
        error = self.shell.cell_error
        if error is None:
            return
        if isinstance(error, SystemExit):
            failed, text = self._exit_notice(error)
            if not failed:
                self.shell.cell_error = None
                streams.write_error(text)
                return
            lines = [text]
            name, value = "SystemExit", str(error.code)[:1000]
        else:
            name, value, lines = tracebacks.describe(error)
            tracebacks.let_go(error)
        self.link.send({"ev": "error", "id": cell, "name": name, "value": value, "traceback": lines})

    def _report_on_stderr(self):
        error = self.shell.cell_error
        if error is not None and not isinstance(error, SystemExit):
            streams.write_error("\n".join(tracebacks.describe(error)[2]) + "\n")


def _restore_builtins():
    """`del __builtins__.len` would take the kernel, and every later cell, down with it."""
    missing = [name for name in _BUILTINS if name not in vars(builtins)]
    for name in missing:
        setattr(builtins, name, _BUILTINS[name])
    streams.write_error(f"(deleted built-in names are back: {', '.join(missing)})\n")


def _keep_terminal_codes_away():
    os.environ.setdefault("TERM", "dumb")
    os.environ.setdefault("NO_COLOR", "1")
    os.environ.setdefault("PAGER", "cat")
    os.environ.setdefault("GIT_PAGER", "cat")


def _support_libraries(asker):
    """What other libraries need here is prepared when they are imported, and not before."""

    def later(module, function):
        def callback(imported):
            ours = __import__(f"pykeep_kernel.{module}", fromlist=[function])
            getattr(ours, function)(imported)

        return callback

    def on_getpass(module):
        module.getpass = asker.getpass

    imports.when_imported("getpass", on_getpass)
    imports.when_imported("matplotlib", later("figures", "on_matplotlib"))
    imports.when_imported("matplotlib.font_manager", later("figures", "on_font_manager"))
    imports.when_imported("matplotlib.pyplot", later("figures", "on_pyplot"))
    imports.when_imported("PIL.ImageShow", later("pictures", "on_image_show"))
    imports.when_imported("pandas", later("tables", "on_pandas"))
    imports.when_imported("plotly.io", later("plots", "on_plotly_io"))


def _end():
    """Runs the exit hooks, for a moment; threads that still run are not waited for."""
    import atexit
    import signal

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, _SHUTDOWN_SECONDS)
    atexit._run_exitfuncs()
    streams.flush()
    os._exit(0)


def main():
    for_image = sys.argv[1:] == ["--warm"]
    kernel = Kernel()
    if for_image:
        from pykeep_kernel import warm

        warm.up(kernel)
    kernel.serve()
    _end()
