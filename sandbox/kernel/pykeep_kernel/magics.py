"""Magics that differ from IPython's here, exit() and quit(), and what %config expects to find."""

import subprocess

from IPython.core.autocall import ExitAutocall
from traitlets import Any
from traitlets.config import Configurable


class InlineBackend(Configurable):
    """`%config InlineBackend.figure_format = 'retina'` is accepted and changes nothing: image sizes
    follow the budget."""

    figure_format = Any().tag(config=True)
    figure_formats = Any().tag(config=True)
    print_figure_kwargs = Any().tag(config=True)
    rc = Any().tag(config=True)
    close_figures = Any().tag(config=True)


class Exit(ExitAutocall):
    """exit() and quit() end the cell, not the session."""

    def __call__(self, code=None, *_arguments, **_options):
        raise SystemExit(code)


def install(shell, packages):
    shell.configurables.append(InlineBackend(parent=shell))
    leave = Exit(shell)
    for name in ("exit", "quit"):
        shell.user_ns[name] = shell.user_ns_hidden[name] = leave
    shell.exiter = leave
    shell.ask_exit = leave

    def pip(line):
        """Install packages for this session."""
        packages.pip(shell.var_expand(line, depth=1))

    shell.register_magic_function(pip, "line")
    for program in ("bash", "sh"):
        original = shell.find_cell_magic(program)
        shell.register_magic_function(_script(program, original), "cell", program)


def _script(program, original):
    """IPython's own copies output through an event loop; this one leaves it to the descriptors."""

    def script(line, cell):
        if line.strip():
            return original(line, cell)
        process = subprocess.Popen([program], stdin=subprocess.PIPE)
        try:
            process.communicate(cell.encode("utf-8", "pykeep"))
        except BaseException:
            process.kill()
            process.wait()
            raise
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, program)
        return None

    script.__name__ = program
    script.__doc__ = f"Run the cell with {program}."
    return script


def exit_notice(error):
    """What to say about SystemExit: (is it an error, text)."""
    code = error.code
    kept = "the session goes on and its variables are kept"
    if code is None or code == 0:
        return False, f"(exit: the cell ended here; {kept})\n"
    return True, f"SystemExit: {code} ({kept})"
