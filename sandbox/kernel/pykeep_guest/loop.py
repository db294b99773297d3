"""One thread waits for descriptors and for points in time, and for nothing else."""

import select
import time


class Loop:
    def __init__(self):
        self._epoll = select.epoll()
        self._watched = {}  # fd -> (mask, on readable, on writable)

    def watch(self, fd, readable, writable):
        """Calls these from turn() on. None and None: forgets it, which has to come before its close."""
        mask = (select.EPOLLIN if readable else 0) | (select.EPOLLOUT if writable else 0)
        before = self._watched.pop(fd, (0,))[0]
        if mask:
            self._watched[fd] = (mask, readable, writable)
        if mask != before:
            if not before:
                self._epoll.register(fd, mask)
            elif mask:
                self._epoll.modify(fd, mask)
            else:
                self._epoll.unregister(fd)

    def turn(self, deadlines):
        """Waits, until the first of the deadlines at most, and for ever without one; calls what is due."""
        first = min(deadlines, default=None)
        timeout = None if first is None else max(0.0, first - time.monotonic())
        for fd, event in self._epoll.poll(timeout):
            _, readable, writable = self._watched.get(fd, (0, None, None))
            if event & select.EPOLLOUT and writable:
                writable()
            elif readable:
                readable()
