"""What reaches for the kernel or for other processes is refused with EPERM (clone3: ENOSYS)."""

import ctypes
import errno
import platform

libc = ctypes.CDLL(None, use_errno=True)


def call(*args):
    ctypes.set_errno(0)
    libc.syscall(*(ctypes.c_long(a) for a in args))
    return ctypes.get_errno()


NEWUSER, NEWNS, NEWPID, NEWNET = 0x10000000, 0x20000, 0x20000000, 0x40000000
wrong = []


def expect(name, want, *args):
    got = call(*args)
    if got != want:
        wrong.append((name, errno.errorcode.get(got, got)))


if platform.machine() == "x86_64":
    for flag in (NEWUSER, NEWNS, NEWPID, NEWNET, 0x4000000, 0x8000000, 0x2000000):
        expect(f"clone {flag:x}", errno.EPERM, 56, flag | 17, 0, 0, 0, 0)
        expect(f"unshare {flag:x}", errno.EPERM, 272, flag)
    expect("clone3", errno.ENOSYS, 435, 0, 0)
    for name, number in dict(
        ptrace=101,
        mount=165,
        umount2=166,
        pivot_root=155,
        chroot=161,
        setns=308,
        move_mount=429,
        open_tree=428,
        fsopen=430,
        fsmount=432,
        mount_setattr=442,
        process_vm_readv=310,
        process_vm_writev=311,
        kcmp=312,
        pidfd_getfd=438,
        process_madvise=440,
        bpf=321,
        perf_event_open=298,
        io_uring_setup=425,
        io_uring_enter=426,
        userfaultfd=323,
        keyctl=250,
        add_key=248,
        request_key=249,
        kexec_load=246,
        init_module=175,
        finit_module=313,
        delete_module=176,
        reboot=169,
        swapon=167,
        quotactl=179,
        syslog=103,
        open_by_handle_at=304,
        name_to_handle_at=303,
        iopl=172,
        ioperm=173,
        modify_ldt=154,
        acct=163,
        settimeofday=164,
        sethostname=170,
        fanotify_init=300,
        vhangup=153,
        lookup_dcookie=212,
    ).items():
        expect(name, errno.ENOSYS if number == 442 else errno.EPERM, number, 0, 0, 0, 0, 0)
    expect("personality PER_LINUX32", errno.EPERM, 135, 8)
    expect("personality", 0, 135, 0xFFFFFFFF)
    expect("x32 getpid", errno.EPERM, 0x40000000 + 39)
print("OK" if not wrong else wrong)
