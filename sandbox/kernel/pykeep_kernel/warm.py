"""Warms a kernel up before its image is taken: what every session then has imported and tried once.

Nothing of it may be seen later: no variable, no number, no output.
"""

import gc
import importlib
import linecache
import sys

_LIBRARIES = ("numpy", "pandas", "matplotlib.pyplot", "PIL.Image")

# Each is run as cells are, for the code on the way as much as for the library's own.
_CELLS = (
    (None, "1 + 1"),
    (None, "print('warm')\n'warm'"),
    (None, "import asyncio\nawait asyncio.sleep(0)"),
    (None, "raise ValueError('warm')"),
    (
        "pandas",
        "import numpy as np, pandas as pd\n"
        "frame = pd.DataFrame({'a': np.arange(10.0), 'b': list('ababababab')})\n"
        "frame.groupby('b').mean()\n"
        "frame.describe()",
    ),
    (
        "matplotlib.pyplot",
        "import matplotlib.pyplot as plt\n"
        "figure, axes = plt.subplots()\n"
        "axes.plot([1, 2, 3], label='warm')\n"
        "axes.set_title('warm'), axes.legend()",
    ),
)


def up(kernel):
    for library in _LIBRARIES:
        try:
            importlib.import_module(library)
        except ImportError:
            pass  # not every environment has it
    known = dict(kernel.shell.user_ns)
    with kernel.link.muted():
        for library, code in _CELLS:
            if library is None or library in sys.modules:
                kernel.execute({"id": 0, "code": code})
    kernel.resume("template", {})  # what every session begins with
    _forget(kernel.shell, known)
    for _ in range(2):  # what finalisers let go of is garbage for the second time
        gc.collect()
    gc.freeze()  # a collection in a session then leaves these pages alone


def _forget(shell, known):
    shell.displayhook.flush()
    shell._ = shell.__ = None
    history = shell.history_manager
    history.input_hist_parsed[:] = history.input_hist_raw[:] = [""]
    shell.execution_count = 1
    shell.cell_error = None
    shell.user_ns.clear()
    shell.user_ns.update(known)
    if shell._loop is not None:
        shell._loop.close()  # its descriptors, above all
        shell._loop = None
        import asyncio

        asyncio.set_event_loop(None)
    for name in [name for name in linecache.cache if name.startswith("<cell ")]:
        del linecache.cache[name]
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        vars(sys).pop(name, None)
