/* Instructions that C has no words for. */
#ifndef GUEST_PORTS_H
#define GUEST_PORTS_H

#include <stdint.h>

static inline void port_write(uint16_t port, uint8_t value)
{
    __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline uint8_t port_read(uint16_t port)
{
    uint8_t value;

    __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

static inline uint64_t read_tsc(void)
{
    uint64_t ticks;

    __asm__ volatile("rdtsc" : "=A"(ticks));
    return ticks;
}

static inline void cpu_relax(void)
{
    __asm__ volatile("pause");
}

/*
 * Divide *value by divisor in place and return the remainder. A 32-bit
 * freestanding program has no library to divide 64 bits for it.
 */
static inline uint32_t divide(uint64_t *value, uint32_t divisor)
{
    uint32_t high = (uint32_t)(*value >> 32);
    uint32_t low = (uint32_t)*value;
    uint32_t remainder = high % divisor;

    high /= divisor;
    __asm__("divl %2" : "+a"(low), "+d"(remainder) : "rm"(divisor) : "cc");
    *value = ((uint64_t)high << 32) | low;
    return remainder;
}

#endif
