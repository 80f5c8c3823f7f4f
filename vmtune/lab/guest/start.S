/*
 * The ways into the program, and from ring 0 to ring 3.
 *
 * The first processor: QEMU jumps to pvh_entry in 32-bit protected mode with flat segments,
 * paging and interrupts off, and the address of its start info in ebx. All others begin in real
 * mode at the trampoline, which cpus.c has copied below 1 MiB.
 *
 * Both go on in 64-bit mode with every address below 4 GiB mapped to itself; memory.c maps more where
 * the region is above. Not for its width: some KVMs emulate each instruction of a guest, but for
 * 64-bit code outside of ring 0.
 */
        .set CODE_32, 0x08
        .set CODE_64, 0x10
        .set DATA, 0x18
        .set USER_CODE_64, 0x20 | 3
        .set USER_DATA, 0x28 | 3

        .set STACK_BYTES, 4096
        .set MOST_CPUS, 256
        .set TABLE_BYTES, 4096
        .set GIBS, 4

        /* present, writable, for ring 3 too, and accessed: it is never written to again */
        .set TABLE_FLAGS, 0x27
        /* likewise, 2 MiB large and dirty */
        .set PAGE_FLAGS, 0xe7

        .section .note.Xen, "a", @note
        .balign 4
        .long 2f - 1f                   /* owner's size */
        .long 4f - 3f                   /* descriptor's size */
        .long 18                        /* XEN_ELFNOTE_PHYS32_ENTRY */
1:      .asciz "Xen"
2:      .balign 4
3:      .quad pvh_entry
4:      .balign 4

        .section .text
        .code32
        .globl pvh_entry
pvh_entry:
        cld
        movl $stacks + STACK_BYTES, %esp
        call make_page_tables
        movl %ebx, %edi                 /* what guest_main gets */
        lgdt gdt_pointer
        call enter_long_mode
        ljmp $CODE_64, $first_in_64

/* Changes eax, ecx and edi. */
make_page_tables:
        movl $directories, %edi
        movl $PAGE_FLAGS, %eax
1:      movl %eax, (%edi)
        addl $8, %edi
        addl $0x200000, %eax
        jnc 1b
        movl $directories + TABLE_FLAGS, %eax
        movl $pointers, %edi
        movl $GIBS, %ecx
2:      movl %eax, (%edi)
        addl $8, %edi
        addl $TABLE_BYTES, %eax
        loop 2b
        movl $pointers + TABLE_FLAGS, top_table
        ret

/* Changes eax, ecx and edx. The caller's segments stay what they were. */
enter_long_mode:
        movl $0x20, %eax                /* physical address extension */
        movl %eax, %cr4
        movl $top_table, %eax
        movl %eax, %cr3
        movl $0xc0000080, %ecx          /* EFER */
        rdmsr
        orl $0x100, %eax                /* long mode enable */
        wrmsr
        movl %cr0, %eax
        orl $0x80000000, %eax           /* paging */
        movl %eax, %cr0
        ret

        .code64
first_in_64:
        movl %edi, %edi                 /* the upper halves are not defined before */
        movl %esp, %esp
        call load_data_segments
        call guest_main                 /* does not come back but after an error */
stop:
        cli
        hlt
        jmp stop

load_data_segments:
        movl $DATA, %eax
        movl %eax, %ds
        movl %eax, %es
        movl %eax, %ss
        ret

/* Copied to 0x1000 * the startup message's vector; cs is 0x100 times the vector, ip is 0. */
        .code16
        .globl trampoline
        .globl trampoline_end
trampoline:
        cli
        movw %cs, %ax
        movw %ax, %ds
        lgdtl trampoline_gdt_pointer - trampoline
        movl %cr0, %eax
        andl $0x9fffffff, %eax          /* caches on */
        orl $1, %eax
        movl %eax, %cr0
        ljmpl $CODE_32, $other_in_32
        .balign 4
trampoline_gdt_pointer:
        .word gdt_end - gdt - 1
        .long gdt
trampoline_end:

        .code32
other_in_32:
        cld
        movl $DATA, %eax
        movl %eax, %ds
        movl %eax, %es
        movl %eax, %ss
        movl $1, %ebx
        lock xaddl %ebx, arrived        /* its place among those that arrive, from 1 */
        cmpl $MOST_CPUS, %ebx
        jae 1f
        movl %ebx, %eax
        incl %eax
        shll $12, %eax                  /* STACK_BYTES each */
        leal stacks(%eax), %esp
        call enter_long_mode
        movl %ebx, %edi
        ljmp $CODE_64, $other_in_64
1:      hlt
        jmp 1b

        .code64
other_in_64:
        movl %edi, %edi
        movl %esp, %esp
        call load_data_segments
        call other_cpu_main
        jmp stop

/* Go on in ring 3, where ports may still be used. */
        .globl enter_ring_3
enter_ring_3:
        popq %rcx
        movq %rsp, %rax
        pushq $USER_DATA
        pushq %rax
        pushq $0x3002                   /* flags: I/O privilege level 3 */
        pushq $USER_CODE_64
        pushq %rcx
        iretq

/*
 * Returns once this processor was interrupted, 1 if it was by a disk, else 0; interrupts are off but
 * in here.
 */
        .globl halt
        .globl woken
        .globl woken_by_disk
halt:
        sti
1:      hlt
        jmp 1b
woken:
        movq 24(%rsp), %rsp             /* as it was; iretq some KVMs know for other rings only */
        xorl %eax, %eax
        ret
woken_by_disk:
        movq 24(%rsp), %rsp
        movl $1, %eax
        ret

        .section .data
        .balign 16
gdt:
        .quad 0
        .quad 0x00cf9b000000ffff        /* CODE_32 */
        .quad 0x00af9b000000ffff        /* CODE_64 */
        .quad 0x00cf93000000ffff        /* DATA */
        .quad 0x00affb000000ffff        /* USER_CODE_64 */
        .quad 0x00cff3000000ffff        /* USER_DATA */
gdt_end:
gdt_pointer:
        .word gdt_end - gdt - 1
        .long gdt
        .balign 4
        .globl arrived
arrived:
        .long 1

        .section .bss
        .balign TABLE_BYTES
top_table:
        .skip TABLE_BYTES
        .globl pointers
pointers:
        .skip TABLE_BYTES
directories:
        .skip TABLE_BYTES * GIBS
        .globl stacks
stacks:
        .skip STACK_BYTES * MOST_CPUS

        .section .note.GNU-stack, "", @progbits
