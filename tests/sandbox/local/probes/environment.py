"""Only the short list of variables is here, in no process the server's own."""

import glob
import os

allowed = {
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "PWD",
    "OMP_NUM_THREADS",
    "PYKEEP_TEST_PORT",
    "PYKEEP_TEST_FILE",
}
extra = [n for n in os.environ if n not in allowed and not n.startswith("OPENBLAS_")]
seen = b"".join(open(p, "rb").read() for p in glob.glob("/proc/[0-9]*/environ") if os.access(p, os.R_OK))
print("OK" if not extra and b"canary" not in seen else (extra, seen))
