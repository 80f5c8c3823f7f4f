#include "halt.h"

#include "apic.h"
#include "ports.h"

#define CODE_64 0x10                    /* as in start.S */
#define INTERRUPT_GATE 0x8e00
#define TIMER_VECTOR 0x20
#define SPURIOUS_VECTOR 0x2f
#define VECTORS (SPURIOUS_VECTOR + 1)

#define SOFTWARE_ENABLED 0x100
#define MASKED 0x10000
#define DIVIDE_BY_1 0xb
#define PIC_1_MASK 0x21
#define PIC_2_MASK 0xa1

#define MOST_US 1000000

struct gate {
    uint16_t offset_low, selector, flags, offset_middle;
    uint32_t offset_high, reserved;
};

extern char woken[], woken_by_disk[];   /* start.S */
int halt(void);

static struct gate gates[VECTORS];

static void set_gate(uint32_t vector, const char *handler)
{
    const uint64_t to = (uint64_t)handler;

    gates[vector] = (struct gate){
        .offset_low = (uint16_t)to,
        .selector = CODE_64,
        .flags = INTERRUPT_GATE,
        .offset_middle = (uint16_t)(to >> 16),
    };
}

void halt_set_up(void)
{
    const struct {
        uint16_t limit;
        uint64_t base;
    } __attribute__((packed)) pointer = {sizeof(gates) - 1, (uint64_t)gates};

    set_gate(TIMER_VECTOR, woken);
    set_gate(DISK_VECTOR, woken_by_disk);
    set_gate(SPURIOUS_VECTOR, woken);
    __asm__ volatile("lidt %0" : : "m"(pointer));
    /* The firmware's timer goes on ticking behind these. */
    port_write(PIC_1_MASK, 0xff);
    port_write(PIC_2_MASK, 0xff);
    *apic(APIC_SPURIOUS) = SOFTWARE_ENABLED | SPURIOUS_VECTOR;
    *apic(APIC_LINT0) = MASKED;
    *apic(APIC_TIMER_DIVIDE) = DIVIDE_BY_1;
    *apic(APIC_TIMER) = TIMER_VECTOR;   /* once for each count */
}

int halt_for_us(uint64_t us)
{
    int by_disk;

    /* QEMU's APIC and KVM's both count nanoseconds (apic_common.c, APIC_BUS_CYCLE_NS). */
    *apic(APIC_TIMER_COUNT) = (uint32_t)(us < MOST_US ? us : MOST_US) * 1000;
    by_disk = halt();
    *apic(APIC_END_OF_INTERRUPT) = 0;
    return by_disk;
}
