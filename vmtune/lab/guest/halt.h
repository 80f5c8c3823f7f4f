/* A processor at rest: halted until its own timer wakes it, so that it costs the host nothing. */
#ifndef GUEST_HALT_H
#define GUEST_HALT_H

#include <stdint.h>

/* Let the calling processor be woken by its timer. Once on each, in ring 0. */
void halt_set_up(void);
/* The vector by which disks interrupt (virtio.h). */
#define DISK_VECTOR 0x21

/*
 * Halt for about `us` microseconds, a second at most, or until a disk interrupts: 1 if one did. In
 * ring 0 only.
 */
int halt_for_us(uint64_t us);

#endif
