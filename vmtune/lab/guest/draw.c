#include "draw.h"

/* Marsaglia's xorshift with 64 bits; its low bits are the weaker ones. */
static uint32_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32);
}

uint64_t draw_page(uint64_t *state, uint64_t pages, uint32_t skew)
{
    uint64_t often;

    while ((often = pages * (100 - skew) / 100) && draw(state) % 100 < skew)
        pages = often;
    return often + draw(state) % (pages - often);
}
