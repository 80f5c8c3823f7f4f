/* The calling processor's local APIC, where QEMU has it. */
#ifndef GUEST_APIC_H
#define GUEST_APIC_H

#include <stdint.h>

#define APIC_END_OF_INTERRUPT 0x0b0
#define APIC_SPURIOUS 0x0f0
#define APIC_COMMAND_LOW 0x300
#define APIC_TIMER 0x320
#define APIC_LINT0 0x350
#define APIC_TIMER_COUNT 0x380
#define APIC_TIMER_DIVIDE 0x3e0

static inline volatile uint32_t *apic(uint32_t offset)
{
    return (volatile uint32_t *)(uint64_t)(0xfee00000 + offset);
}

#endif
