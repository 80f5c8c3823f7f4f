/* Time, from the processor's time stamp counter. */
#ifndef GUEST_CLOCK_H
#define GUEST_CLOCK_H

#include <stdint.h>

/* Measure the counter against the interval timer: its ticks per millisecond. */
uint32_t clock_calibrate(void);
uint64_t clock_microseconds(uint64_t ticks, uint32_t ticks_per_ms);
void clock_wait_ms(uint32_t ms, uint32_t ticks_per_ms);

#endif
