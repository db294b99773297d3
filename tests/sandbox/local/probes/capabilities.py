"""No capability, none to be gained, a system call filter in every process, not root."""

import os

wrong = []
for pid in (1, os.getpid()):
    status = dict(x.split(":\t", 1) for x in open(f"/proc/{pid}/status").read().splitlines() if ":\t" in x)
    wrong += [
        (pid, k, status[k]) for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb") if int(status[k], 16)
    ]
    if status["NoNewPrivs"] != "1" or status["Seccomp"] != "2":
        wrong.append((pid, status))
if os.getuid() == 0 or os.geteuid() == 0:
    wrong.append("root")
print("OK" if not wrong else wrong)
