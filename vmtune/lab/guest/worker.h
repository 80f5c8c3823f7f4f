/* A worker: what each processor does for good. */
#ifndef GUEST_WORKER_H
#define GUEST_WORKER_H

#include <stdint.h>

#include "content.h"
#include "settings.h"

/* The same for all of them; set before any begins. */
struct job {
    struct settings settings;
    struct content content;
    uint32_t workers;
    uint32_t ticks_per_ms;
};

extern struct job job;

/* Begin with part `number` of the region; does not come back. */
void worker_run(uint32_t number);

#endif
