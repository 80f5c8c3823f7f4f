/* A processor at rest: halted until its own timer wakes it, so that it costs the host nothing. */
#ifndef GUEST_HALT_H
#define GUEST_HALT_H

#include <stdint.h>

/* Let the calling processor be woken by its timer. Once on each, in ring 0. */
void halt_set_up(void);
/* Halt for about `us` microseconds, a second at most. In ring 0 only. */
void halt_for_us(uint64_t us);

#endif
