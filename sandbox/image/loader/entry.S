// The loader's first instructions, and the table by which the freezer finds its way (parasite.hpp).

    .section .table, "a"
    .quad 0x31444c504b5950          // kLoaderMagic
    .quad parasite
    .quad parasite_fork
    .quad parasite_stack_end
    .quad parasite_result
    .quad vdso_proxy
    .quad vdso_proxy_end

    .text
    .globl _start
_start:                             // the kernel's stack goes away later: leave it at once
    mov %rsp, %rdi
    lea main_stack_end(%rip), %rsp
    xor %ebp, %ebp
    call loader_main
    hlt

    .globl parasite
parasite:
    call parasite_main
    int3
    hlt

    // The child has the same parent as the process (CLONE_PARENT): the sandbox's init reaps it, and
    // code in the process never sees it.
    .globl parasite_fork
parasite_fork:
    mov $56, %eax                   // clone
    mov $0x8000, %edi               // CLONE_PARENT
    xor %esi, %esi
    xor %edx, %edx
    xor %r10d, %r10d
    xor %r8d, %r8d
    syscall
    int3
    hlt

    // long start_thread(flags, stack_end, function or 0, argument): clone, without a C library. The
    // new thread calls the function, or ends at once without ever touching its stack.
    .globl start_thread
start_thread:
    push %r12
    push %r13
    mov %rdx, %r12
    mov %rcx, %r13
    mov $56, %eax
    xor %edx, %edx
    xor %r10d, %r10d
    xor %r8d, %r8d
    syscall
    test %rax, %rax
    jz 1f
    pop %r13
    pop %r12
    ret
1:  test %r12, %r12
    jz 2f
    mov %r13, %rdi
    xor %ebp, %ebp
    call *%r12
2:  mov $60, %eax                   // exit
    xor %edi, %edi
    syscall
    hlt

    .section .proxy, "ax"
    .globl vdso_proxy
vdso_proxy:
    .incbin VDSO_PROXY
    .balign 4096
    .globl vdso_proxy_end
vdso_proxy_end:

    .bss
    .balign 64
    .skip 65536
main_stack_end:
    .skip 64
    .skip 16384
parasite_stack_end:
    .skip 64

    .section .note.GNU-stack, "", @progbits
