/*
 * The only program of the boot benchmark's initramfs, without a C library: says that user space
 * is reached, and switches the machine off. See vmtune/bench/boot_linux.py for how it is built.
 */
#define WRITE 1
#define REBOOT 169
#define MAGIC1 0xfee1dead
#define MAGIC2 672274793
#define POWER_OFF 0x4321fedc

static long call(long number, long first, long second, long third, long fourth)
{
    register long r10 __asm__("r10") = fourth;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
}

void _start(void)
{
    static const char said[] = "vmtune boot: user space\n";

    call(WRITE, 1, (long)said, sizeof said - 1, 0);
    call(REBOOT, MAGIC1, MAGIC2, POWER_OFF, 0);
    for (;;)
        ;
}
