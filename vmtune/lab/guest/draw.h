/* Which page is written next, where pages are not written in their order. */
#ifndef GUEST_DRAW_H
#define GUEST_DRAW_H

#include <stdint.h>

/*
 * A page from 0 to before `pages`, at least 1. Of 100 draws, `skew` are of the first 100 - skew
 * percent of the pages, and among these again, and so on: with 80, 80 % of the draws are of 20 %
 * of the pages and 64 % of 4 %. With 50 all pages are alike. `state` is never 0.
 */
uint64_t draw_page(uint64_t *state, uint64_t pages, uint32_t skew);

#endif
