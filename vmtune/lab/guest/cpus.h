/* The VM's processors. */
#ifndef GUEST_CPUS_H
#define GUEST_CPUS_H

#include <stdint.h>

/* As many as start.S has stacks for. */
#define MOST_CPUS 256

/* How many QEMU has given the VM, as it says itself. */
uint32_t cpus_present(void);

/*
 * Start all others. Each runs `work` with its number: 0 is the caller, the rest are counted in
 * the order of their APIC IDs, which is that of QEMU's vCPUs. Returns how many there are, the
 * caller included: fewer than `count` if some have not answered for a long time.
 */
uint32_t cpus_start(uint32_t count, uint32_t ticks_per_ms, void (*work)(uint32_t number));

/* The calling processor's APIC ID. */
uint8_t cpus_apic_id(void);

/* Leave the processor's ring 0 for good. Ports may still be used. */
void enter_ring_3(void);

#endif
