/* The guest's settings, from the kernel command line. */
#ifndef GUEST_SETTINGS_H
#define GUEST_SETTINGS_H

#include <stdint.h>

/* Sizes may end in k, M or G: powers of 1024, as on a Linux command line. */
struct settings {
    uint64_t region_bytes;      /* region=256M  how much memory to dirty, all vCPUs together */
    uint32_t stride_bytes;      /* stride=4096  from one written byte to the next; 1 to 4: all */
    uint32_t idle_ms;           /* idle_ms=0    rest after each pass */
    uint32_t dirty_mb;          /* dirty_mb=0   at most so many 10^6 bytes of pages a second */
    uint32_t zero_percent;      /* zero=0       share of pages that hold zeros */
    uint32_t random_percent;    /* random=0     share of pages that cannot be compressed */
    uint32_t beat_ms;           /* beat_ms=0    time from beat to beat, see beat.h */
    uint32_t check;             /* check=0      1: look for what was written before, see content.h */
    uint32_t ring;              /* ring=0       ring of the workers, 0 or 3; with shares always 3 */
    uint32_t skew_percent;      /* skew=0       0: pages in order; 50 to 99: drawn, see draw.h */

    /* With io_depth above 0 the guest loads its virtio-blk disks, and no memory: see io.h. */
    uint32_t io_depth;          /* io_depth=0   requests of each job under way at once */
    uint32_t io_jobs;           /* io_jobs=1    of all disks and queues together */
    uint32_t io_block_bytes;    /* io_block=4k  of one request: a multiple of 512 */
    uint32_t io_write_percent;  /* io_write=0   share of requests that write */
    uint32_t io_sequential;     /* io_sequential=0  1: a queue's blocks in order; 0: drawn */
    uint32_t io_ramp_ms;        /* io_ramp_ms=0 load before requests count */
    uint32_t io_ms;             /* io_ms=1000   load that counts */
    uint32_t io_wait;           /* io_wait=0    0: look for answers; 1: halt until an interrupt */
    uint32_t io_check;          /* io_check=0   1: verify what is read; the disk begins as zeros */

    uint32_t remaps;            /* remaps=0     before it begins, see remap.h */
};

struct settings_error {
    const char *parameter;      /* a stretch of the command line */
    uint32_t parameter_length;
    const char *reason;
};

/* Fill in defaults and what `line` sets; 0, or -1 with *error filled in. */
int settings_parse(const char *line, struct settings *settings,
                   struct settings_error *error);

#endif
