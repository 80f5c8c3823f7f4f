/* What QEMU passes to a PVH guest, and where there is memory to dirty. */
#ifndef GUEST_MEMORY_H
#define GUEST_MEMORY_H

#include <stdint.h>

#define PVH_MAGIC 0x336ec578

/* struct hvm_start_info of the PVH boot protocol, version 1. */
struct start_info {
    uint32_t magic;
    uint32_t version;
    uint32_t flags;
    uint32_t module_count;
    uint64_t modules;
    uint64_t command_line;
    uint64_t rsdp;
    uint64_t memory_map;
    uint32_t memory_map_entries;
    uint32_t reserved;
} __attribute__((packed));

struct memory_area {
    uint64_t start;
    uint64_t size;
};

/* The largest stretch of memory below 4 GiB and behind the program; size 0: none. */
struct memory_area memory_largest(const struct start_info *info);

/*
 * A stretch of at least `bytes`, mapped to itself: the largest below 4 GiB if that is large enough,
 * else the largest above. Where neither is, the larger of the two, and not mapped.
 */
struct memory_area memory_for(const struct start_info *info, uint64_t bytes);

#endif
