/* Time, from the processor's time stamp counter. */
#ifndef GUEST_CLOCK_H
#define GUEST_CLOCK_H

#include <stdint.h>

/* Measure the counter against the interval timer: its ticks per millisecond. */
uint32_t clock_calibrate(void);
/* Microseconds of `ticks`. */
uint64_t clock_microseconds(uint64_t ticks, uint32_t ticks_per_ms);
/* From `begin` to `end`; 0 if the counter has gone back, as it may over a migration. */
uint64_t clock_between(uint64_t begin, uint64_t end);
void clock_wait_us(uint32_t us, uint32_t ticks_per_ms);

#endif
