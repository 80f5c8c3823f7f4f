/*
 * PVH entry: QEMU jumps here in 32-bit protected mode with flat segments,
 * paging and interrupts off, and the address of its start info in ebx.
 */
        .section .note.Xen, "a", @note
        .balign 4
        .long 2f - 1f                   /* owner's size */
        .long 4f - 3f                   /* descriptor's size */
        .long 18                        /* XEN_ELFNOTE_PHYS32_ENTRY */
1:      .asciz "Xen"
2:      .balign 4
3:      .long pvh_entry
4:      .balign 4

        .section .text
        .globl pvh_entry
pvh_entry:
        cld
        movl $stack_top, %esp
        pushl %ebx
        call guest_main                 /* does not come back */
stop:
        cli
        hlt
        jmp stop

        .section .bss
        .balign 16
        .skip 16384
stack_top:

        .section .note.GNU-stack, "", @progbits
