/* An IDE disk, where the VM has one: the first of the first channel. */
#ifndef GUEST_DISK_H
#define GUEST_DISK_H

#include <stdint.h>

/* Whether it is there. */
int disk_present(void);

/*
 * Write the next sector of the disk's first MiB, and read back the one that was written longest
 * ago: how many of its 256 words are not what was written; all where the disk tells an error.
 */
uint32_t disk_turn(void);

#endif
