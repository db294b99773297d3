"""A name lookup fails, and at once."""

import socket
import time

start = time.monotonic()
try:
    print("resolved", socket.gethostbyname("pykeep-test.example"))
except OSError:
    took = time.monotonic() - start
    print("OK" if took < 1 else took)
