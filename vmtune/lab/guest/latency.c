#include "latency.h"

#define PARTS 32
#define PART_BITS 5
#define MOST_TICKS (((uint64_t)1 << 44) - 1)

uint32_t latency_bin(uint64_t ticks)
{
    uint32_t shift;

    if (ticks < 2 * PARTS)
        return (uint32_t)ticks;
    if (ticks > MOST_TICKS)
        ticks = MOST_TICKS;
    shift = 63 - PART_BITS - (uint32_t)__builtin_clzll(ticks);
    return shift * PARTS + (uint32_t)(ticks >> shift);
}

void latency_add(struct latency *latency, uint64_t ticks)
{
    if (!latency->requests || ticks < latency->least)
        latency->least = ticks;
    if (ticks > latency->most)
        latency->most = ticks;
    latency->requests++;
    latency->sum += ticks;
    latency->bins[latency_bin(ticks)]++;
}

void latency_merge(struct latency *latency, const struct latency *other)
{
    if (!other->requests)
        return;
    if (!latency->requests || other->least < latency->least)
        latency->least = other->least;
    if (other->most > latency->most)
        latency->most = other->most;
    latency->requests += other->requests;
    latency->sum += other->sum;
    for (uint32_t i = 0; i < LATENCY_BINS; i++)
        latency->bins[i] += other->bins[i];
}
