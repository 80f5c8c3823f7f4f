/*
 * virtio-blk disks on PCI, by the Virtual I/O Device specification 1.0 ("modern"): sections 2.6
 * (virtqueues), 4.1 (PCI) and 5.2 (block). Each request is one indirect table, so that as many are
 * under way as the queue has places.
 */
#ifndef GUEST_VIRTIO_H
#define GUEST_VIRTIO_H

#include <stdint.h>

#define MOST_DISKS 16
#define SECTOR_BYTES 512

struct virtio_disk {
    volatile uint8_t *common, *notify;  /* structures of its configuration */
    uint32_t notify_multiplier;
    volatile uint32_t *vectors;         /* of MSI-X; NULL: it has none */
    uint32_t vector_count;
    uint64_t sectors;
    uint32_t queues;
    int event_index;                    /* of VIRTIO_F_EVENT_IDX, which was agreed upon */
    int read_only;
};

struct virtio_queue {
    uint32_t size;
    volatile struct virtio_descriptor *descriptors;
    volatile uint16_t *available, *used;
    volatile uint16_t *doorbell;
    uint32_t number;
    uint16_t made_available;            /* index up to which the disk knows of */
    uint16_t next;                      /* index of what comes next */
    uint16_t taken;                     /* index up to which answers were taken */
    int event_index;
};

struct virtio_descriptor {
    uint64_t address;
    uint32_t length;
    uint16_t flags;
    uint16_t next;
};

/* One request, for as often as it is made. Its address is a multiple of 16. */
struct virtio_request {
    struct virtio_descriptor table[3];
    struct {
        uint32_t type, reserved;
        uint64_t sector;
    } header;
    volatile uint8_t status;            /* 0 where all went well */
};

/*
 * Find all disks of the first bus, reset them, and agree with each upon its features. Returns how
 * many there are, or -1 after the line that says what is wrong. Only one processor may do so.
 */
int virtio_find(struct virtio_disk *disks);

/* The most places of that queue; 0: the disk does not have it. */
uint32_t virtio_queue_places(const struct virtio_disk *disk, uint32_t number);
/* The bytes that a queue of so many places takes, in whole pages. */
uint32_t virtio_queue_bytes(uint32_t places);
/*
 * Set a queue up in memory at `memory`, which is zeros and begins with a page. With `vector` its
 * interrupts are message `number` of the disk, see virtio_aim(). Returns 0, or -1 after the line.
 */
int virtio_queue_set_up(const struct virtio_disk *disk, uint32_t number, uint64_t memory,
                        int vector, struct virtio_queue *queue);
/* Let the disk begin, once all its queues are set up. */
void virtio_begin(const struct virtio_disk *disk);

/* Have a queue's interrupts come to the processor of that APIC ID, by that vector. */
void virtio_aim(const struct virtio_disk *disk, uint32_t number, uint32_t apic_id,
                uint32_t vector);

/* Prepare the request of a place; its data are `bytes` at `data`. */
void virtio_prepare(struct virtio_queue *queue, uint32_t place, struct virtio_request *request,
                    uint64_t data, uint32_t bytes);
/* Add the prepared request of a place to those that virtio_submit() will tell of. */
void virtio_add(struct virtio_queue *queue, uint32_t place, struct virtio_request *request,
                int write, uint64_t sector);
/* Tell the disk of all that was added; 1 if it had to be woken for that. */
int virtio_submit(struct virtio_queue *queue);
/* The place of a request that is answered; -1: there is none. */
int32_t virtio_take(struct virtio_queue *queue);
/* Ask for an interrupt at the next answer, or for none; 1 if an answer is there already. */
int virtio_want_interrupt(struct virtio_queue *queue, int wanted);

#endif
