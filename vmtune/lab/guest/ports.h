/* Instructions that C has no words for. */
#ifndef GUEST_PORTS_H
#define GUEST_PORTS_H

#include <stdint.h>

static inline void port_write(uint16_t port, uint8_t value)
{
    __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline void port_write_word(uint16_t port, uint16_t value)
{
    __asm__ volatile("outw %0, %1" : : "a"(value), "Nd"(port));
}

static inline void port_write_long(uint16_t port, uint32_t value)
{
    __asm__ volatile("outl %0, %1" : : "a"(value), "Nd"(port));
}

static inline uint32_t port_read_long(uint16_t port)
{
    uint32_t value;

    __asm__ volatile("inl %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

/* Many bytes to one port: a single exit from the guest under KVM. */
static inline void port_write_bytes(uint16_t port, const char *bytes, uint64_t count)
{
    __asm__ volatile("rep outsb" : "+S"(bytes), "+c"(count) : "d"(port) : "memory");
}

static inline uint8_t port_read(uint16_t port)
{
    uint8_t value;

    __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

/* Likewise words, both ways. */
static inline void port_write_words(uint16_t port, const uint16_t *words, uint64_t count)
{
    __asm__ volatile("rep outsw" : "+S"(words), "+c"(count) : "d"(port) : "memory");
}

static inline void port_read_words(uint16_t port, uint16_t *words, uint64_t count)
{
    __asm__ volatile("rep insw" : "+D"(words), "+c"(count) : "d"(port) : "memory");
}

static inline uint64_t read_tsc(void)
{
    uint32_t low, high;

    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

static inline void cpu_relax(void)
{
    __asm__ volatile("pause" : : : "memory");
}

#endif
