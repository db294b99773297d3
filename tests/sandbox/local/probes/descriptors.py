"""Nothing is open but /dev/null, two pipes and the link, in the program and in its init."""

import os
import stat

extra = [n for n in os.listdir("/proc/self/fd") if int(n) > 3 and os.path.exists(f"/proc/self/fd/{n}")]
kinds = [stat.S_IFMT(os.fstat(n).st_mode) for n in range(4)]
right = kinds == [stat.S_IFCHR, stat.S_IFIFO, stat.S_IFIFO, stat.S_IFSOCK]
init = [
    link
    for link in (os.readlink(f"/proc/1/fd/{n}") for n in os.listdir("/proc/1/fd"))
    if link.startswith(("/", "socket")) and link != "/dev/null"
]
print("OK" if not extra and right and not init else (extra, kinds, init))
