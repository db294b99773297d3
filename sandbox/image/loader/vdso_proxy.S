// A vdso of our own, for the C library to find. Its functions jump through the table at kVdsoTable,
// which boot and thaw fill from the vdso of the running kernel. So the pointers that a process keeps
// stay good under another kernel, and reading a clock stays as fast as it was.
// __vdso_getrandom is left out on purpose: its state would be cloned with the process.

    .macro proxy name, index
    .globl \name
    .type \name, @function
\name:
    movabs 0x1ffff0000000 + 8 * \index, %rax
    jmp *%rax
    .size \name, . - \name
    .endm

    .text
    proxy __vdso_clock_gettime, 0
    proxy __vdso_gettimeofday, 1
    proxy __vdso_time, 2
    proxy __vdso_clock_getres, 3
    proxy __vdso_getcpu, 4

    .section .note.GNU-stack, "", @progbits
