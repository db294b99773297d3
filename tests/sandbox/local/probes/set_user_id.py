"""A set-user-id program gives nobody anything."""

import os
import subprocess

got = []
for command in (
    ["/usr/bin/su", "-c", "id"],
    ["/usr/bin/mount", "-o", "remount,rw", "/"],
    ["/usr/bin/mount", "-t", "tmpfs", "x", "/workspace"],
):
    if os.path.exists(command[0]):
        result = subprocess.run(command, capture_output=True, timeout=10, stdin=subprocess.DEVNULL)
        if result.returncode == 0:
            got.append(command)
flags = os.statvfs("/usr/bin").f_flag
print("OK" if not got and flags & os.ST_NOSUID and flags & os.ST_RDONLY else (got, flags))
