"""/workspace, /tmp and /dev/shm can be written to, and nothing else: no start-up file of anybody's."""

import os

wrote = []


def try_in(directory):
    for name in ("pykeep-probe", "sitecustomize.py", "x.pth"):
        path = os.path.join(directory, name)
        try:
            with open(path, "x"):
                pass
            os.unlink(path)
            wrote.append(path)
        except OSError:
            pass


for top in ("/", "/usr", "/etc", "/dev", "/proc"):
    for directory, below, _ in os.walk(top):
        if directory.startswith(("/workspace", "/tmp", "/dev/shm", "/proc/")) or directory.count("/") > 3:
            below.clear()
            continue
        try_in(directory)
for path in ("/etc/passwd", "/usr/bin/python3", "/etc/ld.so.cache", "/usr/lib/os-release"):
    try:
        open(path, "r+").close()
        wrote.append(path)
    except OSError:
        pass
for directory in ("/workspace", "/tmp", "/dev/shm", os.environ["HOME"]):
    with open(os.path.join(directory, "x"), "w") as f:
        f.write("x")
print("OK" if not wrote else wrote)
