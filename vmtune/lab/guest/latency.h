/*
 * How long requests took, in ticks of the time stamp counter: sum, extremes and a histogram. Up to
 * 63 ticks each number has a bin; above, each power of two has 32, so that a bin is as wide as a
 * 32nd of what it begins with.
 */
#ifndef GUEST_LATENCY_H
#define GUEST_LATENCY_H

#include <stdint.h>

#define LATENCY_BINS 1280

struct latency {
    uint64_t requests, sum, least, most;
    uint64_t bins[LATENCY_BINS];
};

/* The bin of so many ticks. */
uint32_t latency_bin(uint64_t ticks);
void latency_add(struct latency *latency, uint64_t ticks);
/* Add all of `other`. */
void latency_merge(struct latency *latency, const struct latency *other);

#endif
