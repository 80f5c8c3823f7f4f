/*
 * Requests to virtio-blk disks, instead of writes to memory (settings io_*, see settings.h). Job j
 * has disk j modulo their number, and of its queues the next one: the requests of all jobs of a
 * queue are under way there together. Queues are dealt out to the processors in turn.
 *
 * What came of it is told on the channel of the heartbeat (beat.h), in lines instead of beats:
 *
 *   io start block=4096 disks=1 queues=2 places=256 requests=64 bytes=67108864
 *     event_index=1 tsc_khz=2599998
 *   io counting
 *   io so_far requests=81234                 every beat_ms, if that is set
 *   io ended us=10000021
 *   io read requests=812345 sum=1 least=1 most=1
 *   io read_bins 423=1 431=12
 *   io write requests=0 sum=0 least=0 most=0
 *   io done errors=0 wrong=0 wakes=90212 interrupts=0
 *
 * Requests count that were answered between `counting`, when io_ramp_ms are over, and `ended`.
 * Times are ticks, with bins as latency.h has them. `wakes` are writes to a queue's doorbell. With
 * io_check=1 what is written tells its place and how often that was written, and what is read has
 * to be what was written there last, or zeros; `wrong` counts the words that are not.
 */
#ifndef GUEST_IO_H
#define GUEST_IO_H

#include <stdint.h>

#include "memory.h"

/* Set the disks up; 0, or -1 after the line that says what is wrong. Once, in ring 0. */
int io_set_up(struct memory_area memory);
/* What each processor does: does not come back. */
void io_run(uint32_t number);

#endif
