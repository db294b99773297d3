"""SIGINT: interrupts a running cell, waits while a frame is sent, means nothing between cells."""

import signal
import threading


class Interrupts:
    def __init__(self):
        self.running = False  # whether a cell is there to be interrupted
        self.held = _Held(self)
        self._pending = False
        self._main = threading.main_thread().ident
        self._depth = 0

    def install(self):
        # At every cell, since the last one may have set another handler. A handler that does
        # nothing, rather than SIG_IGN, because children would inherit SIG_IGN.
        if signal.getsignal(signal.SIGINT) != self._on_signal:
            signal.signal(signal.SIGINT, self._on_signal)

    def cell_ended(self):
        self.running = False
        self._pending = False
        self._depth = 0

    def _on_signal(self, _signum, _frame):
        if not self.running:
            return
        if self._depth:
            self._pending = True
            return
        raise KeyboardInterrupt


class _Held:
    """`with interrupts.held:` puts a KeyboardInterrupt off until the block has ended."""

    def __init__(self, owner):
        self._owner = owner

    def __enter__(self):
        if threading.get_ident() == self._owner._main:
            self._owner._depth += 1

    def __exit__(self, *_error):
        owner = self._owner
        if threading.get_ident() != owner._main:
            return
        owner._depth = max(0, owner._depth - 1)
        if owner._pending and not owner._depth:
            owner._pending = False
            if owner.running:
                raise KeyboardInterrupt
