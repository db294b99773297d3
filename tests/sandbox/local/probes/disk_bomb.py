"""One file has a largest size (EFBIG), /tmp and /dev/shm an end (ENOSPC)."""

import errno
import os
import signal

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def fill(path):
    block = b"x" * (1 << 20)
    try:
        with open(path, "wb", buffering=0) as f:
            for _ in range(256):
                f.write(block)
        return "filled"
    except OSError as e:
        return e.errno
    finally:
        os.unlink(path)


got = [fill("/workspace/big"), fill("/tmp/big"), fill("/dev/shm/big")]
print("OK" if got == [errno.EFBIG, errno.ENOSPC, errno.ENOSPC] else got)
