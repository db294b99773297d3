"""/proc shows only this sandbox and changes nothing."""

import os

wrong = []
for path in (
    "/proc/sysrq-trigger",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/kernel/hostname",
):
    try:
        with open(path, "w") as f:
            f.write("x")
        wrong.append(path)
    except OSError:
        pass
for path in ("/proc/kcore", "/proc/kmsg", "/proc/kpageflags"):
    try:
        with open(path, "rb") as f:
            f.read(1)
        wrong.append(path)
    except OSError:
        pass
try:
    if any(int(line.split()[0], 16) for line in open("/proc/kallsyms").readlines()[:50]):
        wrong.append("kallsyms")
except OSError:
    pass
pids = [int(n) for n in os.listdir("/proc") if n.isdigit()]
if max(pids) > 10:
    wrong.append(pids)
print("OK" if not wrong else wrong)
