"""The program is pid 2; signals to the group, to everybody and to init end nothing outside."""

import os
import signal
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.killpg(0, signal.SIGTERM)
try:
    os.kill(-1, signal.SIGTERM)
except ProcessLookupError:
    pass  # nobody but init and this program
os.kill(1, signal.SIGKILL)
time.sleep(0.05)
try:
    os.kill(os.getppid(), signal.SIGKILL)
except PermissionError:
    pass
time.sleep(0.05)
print("OK" if os.getpid() == 2 and os.getppid() == 1 else (os.getpid(), os.getppid()))
