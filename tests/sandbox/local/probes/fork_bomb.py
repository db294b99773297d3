"""A fork bomb hits its limit."""

import os
import signal
import time

children = []
try:
    for _ in range(2000):
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
            os._exit(0)
        children.append(pid)
    print("forked", len(children))
except OSError:
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    print("OK" if len(children) < 64 else len(children))
