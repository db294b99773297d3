"""with_seccomp.py PROFILE COMMAND...: runs a command under a container's seccomp profile, as far as one that
allows all but a list of calls goes (packaging/oci/seccomp.json)."""

import ctypes
import json
import os
import sys

ALLOW, ERRNO = 0x7FFF0000, 0x00050000

profile = json.load(open(sys.argv[1], encoding="utf-8"))
assert profile["defaultAction"] == "SCMP_ACT_ALLOW"
library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
library.seccomp_init.restype = ctypes.c_void_p
context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(ALLOW)))
for rule in profile["syscalls"]:
    assert rule["action"] == "SCMP_ACT_ERRNO"
    for name in rule["names"]:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number != -1:  # of another architecture, or newer than this library
            library.seccomp_rule_add(context, ctypes.c_uint32(ERRNO | rule["errnoRet"]), number, 0)
if library.seccomp_load(context) != 0:
    sys.exit(f"with_seccomp: {os.strerror(ctypes.get_errno())}")
os.execv(sys.argv[2], sys.argv[2:])
