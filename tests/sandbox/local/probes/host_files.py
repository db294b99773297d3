"""Nothing of the host's but programs and libraries."""

import os

there = [
    p
    for p in (
        "/etc/shadow",
        "/root",
        "/home",
        "/run",
        "/var",
        "/sys",
        "/boot",
        "/srv",
        "/mnt",
        "/media",
        "/usr/local",
        "/usr/sbin",
        "/usr/src",
        "/usr/include",
        "/etc/ssh",
        "/etc/hostname",
        "/etc/machine-id",
        "/etc/resolv.conf",
        "/opt",
        "/dev/mem",
        "/dev/kmsg",
        "/dev/fuse",
        "/dev/vda",
        os.environ["PYKEEP_TEST_FILE"],
    )
    if os.path.lexists(p)
]
root = set(os.listdir("/")) - {
    "bin",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "usr",
    "etc",
    "proc",
    "dev",
    "tmp",
    "workspace",
}
users = open("/etc/passwd").read().count("\n")
print("OK" if not there and not root and users == 1 else (there, root, users))
