/*
 * The only program of the boot benchmark's initramfs, without a C library: says that user space
 * is reached, and switches the machine off. It says so three times, as the kernel may write in
 * the middle of its line; the first that is whole counts. See vmtune/bench/boot_initramfs.py for
 * how it is built.
 */
#define WRITE 1
#define IOCTL 16
#define REBOOT 169
#define OUTPUT 1
#define DRAIN 0x5409            /* TCSBRK: with an argument above 0 it waits for the port */
#define TIMES 3
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

    for (int time = 0; time < TIMES; time++)
        call(WRITE, OUTPUT, (long)said, sizeof said - 1, 0);
    call(IOCTL, OUTPUT, DRAIN, 1, 0);
    call(REBOOT, MAGIC1, MAGIC2, POWER_OFF, 0);
    for (;;)
        ;
}
