/*
 * What the region's pages hold. A page is of one kind for good, by its number in the region:
 * of each 100 pages the first `zero` hold zeros, the next `random` bytes that do not compress,
 * the rest a pattern that compresses to about 30 %. Every stretch of 100 pages has
 * the same shares, wherever it begins.
 */
#ifndef GUEST_CONTENT_H
#define GUEST_CONTENT_H

#include <stdint.h>

#define PAGE 4096
/* Up to this stride the whole of a page is written. */
#define DENSE_STRIDE 4

enum kind {
    KIND_PLAIN,                 /* no shares are set: memory as it is, and one value written */
    KIND_ZERO,
    KIND_RANDOM,
    KIND_PATTERN,
};

struct content {
    uint64_t region;            /* address of page 0, at a page's start */
    uint32_t stride;
    uint32_t zero_percent;
    uint32_t random_percent;
    uint32_t check;             /* writes are words that tell their place and pass */
};

/* The kind of a page, and in *alike how many pages from it on are certainly of that kind. */
enum kind content_kind(const struct content *content, uint64_t page, uint64_t *alike);

/* Fill the pages from `from` to `to`, as they are before the first pass. */
void content_lay_out(const struct content *content, uint64_t from, uint64_t to);

/*
 * The writes of one pass from `at` to before `limit`; returns where the next one goes. Each pass
 * changes what it writes, but for zeros. `at` has to be a place that a pass writes to; at a dense
 * stride both are a page's start, but for the end of the region.
 */
uint64_t content_write(const struct content *content, uint64_t at, uint64_t limit, uint64_t pass);

/*
 * How many of the words from `at` to before `limit` are not what the pass before `pass` has
 * written there: of a page that was lost, is older, or belongs to another place. 0 before the
 * first pass, and without `check`.
 */
uint64_t content_wrong(const struct content *content, uint64_t at, uint64_t limit, uint64_t pass);

#endif
