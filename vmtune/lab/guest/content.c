#include "content.h"

#define SHARES 100

enum kind content_kind(const struct content *content, uint64_t page, uint64_t *alike)
{
    const uint32_t place = (uint32_t)(page % SHARES);
    const uint32_t random_from = content->zero_percent;
    const uint32_t pattern_from = random_from + content->random_percent;

    if (!pattern_from) {
        *alike = UINT32_MAX;
        return KIND_PLAIN;
    }
    if (place < random_from) {
        *alike = random_from - place;
        return KIND_ZERO;
    }
    if (place < pattern_from) {
        *alike = pattern_from - place;
        return KIND_RANDOM;
    }
    *alike = SHARES - place;
    return KIND_PATTERN;
}

/* Marsaglia's xorshift with 64 bits: three shifts a word, and no algorithm packs it. */
static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Never 0, and far apart for neighbours: the finaliser of splitmix64. */
static uint64_t seed_of(uint64_t page, uint64_t pass)
{
    uint64_t z = (pass << 32 | page) + 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    z ^= z >> 31;
    return z ? z : 1;
}

static inline void fill(uint64_t at, uint64_t bytes, uint64_t word)
{
    uint64_t words = bytes / 8;

    bytes %= 8;
    __asm__ volatile("rep stosq" : "+D"(at), "+c"(words) : "a"(word) : "memory");
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(word) : "memory");
}

/* Bytes beyond the last whole word. */
static void fill_tail(uint64_t at, uint64_t bytes, uint64_t word)
{
    volatile uint8_t *to = (volatile uint8_t *)at;

    for (; bytes; bytes--, word >>= 8)
        *to++ = (uint8_t)word;
}

static void fill_random(uint64_t at, uint64_t bytes, uint64_t state)
{
    volatile uint64_t *to = (volatile uint64_t *)at;

    for (uint64_t words = bytes / 8; words; words--)
        *to++ = next_random(&state);
    fill_tail((uint64_t)to, bytes % 8, next_random(&state));
}

/* What lies about in memory: text, numbers, addresses. Drawn by four bits each. */
static const union {
    char text[9];
    uint64_t word;
} vocabulary[16] = {
    {" the qui"}, {"customer"}, {"order no"}, {" name=\"a"}, {"\", \"id\":"}, {"value: ["},
    {"2026-01-"}, {"k; retur"}, {"/var/lib"}, {".50 EUR\n"}, {"00001700"}, {"\1\0\0\0\0\0\0"},
    {"\0\0\0\0\0\0\0"}, {"\xff\xff\xff\xff\0\0\0"}, {"\x08\0@\0\x10\0\0"}, {"\0\0\0\0\1\0\0"},
};

/* One random word, then seven from the vocabulary, and so on. */
static void fill_pattern(uint64_t at, uint64_t bytes, uint64_t state)
{
    volatile uint64_t *to = (volatile uint64_t *)at;
    uint64_t drawn = 0;

    for (uint64_t i = 0; i < bytes / 8; i++) {
        if (i % 8 == 0) {
            drawn = next_random(&state);
            *to++ = drawn;
            continue;
        }
        drawn >>= 4;
        *to++ = vocabulary[drawn & 15].word;
    }
    fill_tail((uint64_t)to, bytes % 8, drawn);
}

/* 1 to 255: never the byte of a fresh page, never that of the last pass. */
static uint64_t plain_byte(uint64_t pass)
{
    return pass % 255 + 1;
}

static void write_page(uint64_t at, uint64_t bytes, enum kind kind, uint64_t page, uint64_t pass)
{
    switch (kind) {
    case KIND_PLAIN:
        fill(at, bytes, plain_byte(pass) * 0x0101010101010101);
        break;
    case KIND_ZERO:
        fill(at, bytes, 0);
        break;
    case KIND_RANDOM:
        fill_random(at, bytes, seed_of(page, pass));
        break;
    case KIND_PATTERN:
        fill_pattern(at, bytes, seed_of(page, pass));
        break;
    }
}

static void write_pages(const struct content *content, uint64_t from, uint64_t to, uint64_t pass)
{
    while (from < to) {
        const uint64_t page = (from - content->region) / PAGE;
        uint64_t alike;
        const enum kind kind = content_kind(content, page, &alike);
        const uint64_t bytes = to - from < PAGE ? to - from : PAGE;

        write_page(from, bytes, kind, page, pass);
        from += bytes;
    }
}

void content_lay_out(const struct content *content, uint64_t from, uint64_t to)
{
    if (content->zero_percent + content->random_percent)
        write_pages(content, from, to, 0);
}

/* The loops that the guest spends its time in: four instructions a write. */
static uint64_t set_bytes(uint64_t at, uint64_t limit, uint64_t stride, uint8_t value)
{
    for (; at < limit; at += stride)
        *(volatile uint8_t *)at = value;
    return at;
}

/* What was random remains random, and what was a pattern remains one, moved on. */
static uint64_t add_to_bytes(uint64_t at, uint64_t limit, uint64_t stride)
{
    for (; at < limit; at += stride)
        __asm__ volatile("incb (%0)" : : "r"(at) : "memory", "cc");
    return at;
}

/* Each word tells its place and its pass. */
static uint64_t set_words(const struct content *content, uint64_t at, uint64_t limit,
                          uint64_t pass)
{
    for (; at < limit; at += content->stride)
        *(volatile uint64_t *)at = seed_of(at - content->region, pass);
    return at;
}

uint64_t content_wrong(const struct content *content, uint64_t at, uint64_t limit, uint64_t pass)
{
    uint64_t wrong = 0;

    if (!content->check || pass < 2)
        return 0;
    for (; at < limit; at += content->stride)
        wrong += *(volatile uint64_t *)at != seed_of(at - content->region, pass - 1);
    return wrong;
}

uint64_t content_write(const struct content *content, uint64_t at, uint64_t limit, uint64_t pass)
{
    const uint64_t stride = content->stride;

    if (content->check)
        return set_words(content, at, limit, pass);
    if (stride <= DENSE_STRIDE) {
        write_pages(content, at, limit, pass);
        return limit;
    }
    while (at < limit) {
        uint64_t alike, until;
        const uint64_t page = (at - content->region) / PAGE;
        const enum kind kind = content_kind(content, page, &alike);

        until = content->region + (page + alike) * PAGE;
        if (until > limit)
            until = limit;
        if (kind == KIND_PLAIN)
            at = set_bytes(at, until, stride, (uint8_t)plain_byte(pass));
        else if (kind == KIND_ZERO)
            at = set_bytes(at, until, stride, 0);
        else
            at = add_to_bytes(at, until, stride);
    }
    return at;
}
