#include "memory.h"

#define TYPE_RAM 1
#define PAGE 4096

struct map_entry {
    uint64_t address;
    uint64_t size;
    uint32_t type;
    uint32_t reserved;
} __attribute__((packed));

extern char image_end[];

struct memory_area memory_largest(const struct start_info *info)
{
    /* Below 1 MiB and behind it lie the firmware's tables and this program. */
    const uint64_t lowest = ((uint64_t)image_end + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    const uint64_t highest = UINT32_MAX & ~(uint64_t)(PAGE - 1);
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
            best.start = (uint32_t)start;
            best.size = (uint32_t)(end - start);
        }
    }
    return best;
}
