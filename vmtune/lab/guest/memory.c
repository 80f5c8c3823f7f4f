#include "memory.h"

#define TYPE_RAM 1
#define PAGE 4096
#define GIB ((uint64_t)1 << 30)
#define LARGE_PAGE ((uint64_t)2 << 20)
#define MOST_GIBS 512                   /* what one table of pointers has room for */
/* As in start.S: present, writable, for ring 3 too, and accessed; a large page is dirty, too. */
#define TABLE_FLAGS 0x27
#define PAGE_FLAGS 0xe7

struct map_entry {
    uint64_t address;
    uint64_t size;
    uint32_t type;
    uint32_t reserved;
} __attribute__((packed));

extern char image_end[];
extern uint64_t pointers[];             /* a table of 2 MiB pages for each GiB, see start.S */

/* The largest stretch of memory from `lowest` to `highest`. */
static struct memory_area largest(const struct start_info *info, uint64_t lowest,
                                  uint64_t highest)
{
    const struct map_entry *entry = (const void *)info->memory_map;
    struct memory_area best = {0, 0};

    if (info->version < 1)
        return best;
    for (uint32_t i = 0; i < info->memory_map_entries; i++, entry++) {
        uint64_t start = entry->address;
        uint64_t end = entry->address + entry->size;

        if (entry->type != TYPE_RAM)
            continue;
        if (start < lowest)
            start = lowest;
        if (end > highest)
            end = highest;
        if (end > start && end - start > best.size) {
            best.start = start;
            best.size = end - start;
        }
    }
    return best;
}

struct memory_area memory_largest(const struct start_info *info)
{
    /* Below 1 MiB and behind it lie the firmware's tables and this program. */
    const uint64_t lowest = ((uint64_t)image_end + PAGE - 1) & ~(uint64_t)(PAGE - 1);

    return largest(info, lowest, UINT32_MAX & ~(uint64_t)(PAGE - 1));
}

/* Map an area above 4 GiB to itself, with tables of pages in `tables`; 0, or -1 for no room. */
static int map(struct memory_area area, struct memory_area tables)
{
    const uint64_t first = area.start / GIB;
    const uint64_t last = (area.start + area.size - 1) / GIB;
    uint64_t *entry = (uint64_t *)((tables.start + PAGE - 1) & ~(uint64_t)(PAGE - 1));

    if ((last - first + 2) * PAGE > tables.size)
        return -1;
    for (uint64_t gib = first; gib <= last; gib++) {
        pointers[gib] = (uint64_t)entry | TABLE_FLAGS;
        for (uint64_t at = gib * GIB; at < (gib + 1) * GIB; at += LARGE_PAGE)
            *entry++ = at | PAGE_FLAGS;
    }
    return 0;
}

struct memory_area memory_for(const struct start_info *info, uint64_t bytes)
{
    const struct memory_area below = memory_largest(info);
    const struct memory_area above = largest(info, 4 * GIB, MOST_GIBS * GIB);

    if (below.size >= bytes || above.size <= below.size)
        return below;
    if (above.size >= bytes && map((struct memory_area){above.start, bytes}, below))
        return (struct memory_area){0, 0};
    return above;
}
