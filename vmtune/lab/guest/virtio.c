#include "virtio.h"

#include <stddef.h>

#include "fault.h"
#include "pci.h"
#include "ports.h"

#define VENDOR 0x1af4
#define BLOCK_MODERN 0x1042
#define BLOCK_TRANSITIONAL 0x1001

#define CAPABILITY_VENDOR 0x09
#define CAPABILITY_MSIX 0x11
#define MSIX_ON 0x80000000
#define MSIX_MASKED 0x40000000

enum { COMMON = 1, NOTIFY = 2, DEVICE = 4 };

/* struct virtio_pci_common_cfg */
#define FEATURES_ASKED 0
#define FEATURES_OFFERED 4
#define FEATURES_CHOSEN 8
#define FEATURES_TAKEN 12
#define CONFIG_VECTOR 16
#define QUEUES 18
#define STATUS 20
#define QUEUE_CHOSEN 22
#define QUEUE_SIZE 24
#define QUEUE_VECTOR 26
#define QUEUE_ON 28
#define QUEUE_NOTIFY_OFFSET 30
#define QUEUE_DESCRIPTORS 32
#define QUEUE_AVAILABLE 40
#define QUEUE_USED 48
#define NO_VECTOR 0xffff

#define ACKNOWLEDGED 1
#define DRIVER 2
#define DRIVER_OK 4
#define FEATURES_OK 8

#define BLOCK_READ_ONLY (1u << 5)
#define BLOCK_QUEUES (1u << 12)
#define INDIRECT (1u << 28)
#define EVENT_INDEX (1u << 29)
#define VERSION_1 (1u << 0)             /* of the second 32 */

#define DESCRIPTOR_NEXT 1
#define DESCRIPTOR_WRITTEN 2
#define DESCRIPTOR_INDIRECT 4
#define NO_NOTIFY 1
#define NO_INTERRUPT 1
#define PAGE 4096

static volatile uint16_t *half(volatile uint8_t *base, uint32_t offset)
{
    return (volatile uint16_t *)(base + offset);
}

static volatile uint32_t *word(volatile uint8_t *base, uint32_t offset)
{
    return (volatile uint32_t *)(base + offset);
}

static void set_address(volatile uint8_t *common, uint32_t offset, uint64_t address)
{
    *word(common, offset) = (uint32_t)address;
    *word(common, offset + 4) = (uint32_t)(address >> 32);
}

/* Where the parts of the device's configuration are; its own part is returned. */
static volatile uint8_t *read_capabilities(uint32_t slot, struct virtio_disk *disk)
{
    volatile uint8_t *own = NULL;

    for (uint32_t at = 0; (at = pci_capability(slot, at));) {
        const uint8_t kind = pci_read_byte(slot, at);

        if (kind == CAPABILITY_VENDOR) {
            const uint32_t memory = pci_memory(slot, pci_read_byte(slot, at + 4));
            volatile uint8_t *part =
                (volatile uint8_t *)(uint64_t)(memory + pci_read(slot, at + 8));

            if (!memory)
                continue;
            switch (pci_read_byte(slot, at + 3)) {
            case COMMON:
                disk->common = part;
                break;
            case NOTIFY:
                disk->notify = part;
                disk->notify_multiplier = pci_read(slot, at + 16);
                break;
            case DEVICE:
                own = part;
                break;
            }
        } else if (kind == CAPABILITY_MSIX) {
            const uint32_t table = pci_read(slot, at + 4);
            const uint32_t memory = pci_memory(slot, table & 7);

            if (!memory)
                continue;
            disk->vectors = (volatile uint32_t *)(uint64_t)(memory + (table & ~(uint32_t)7));
            disk->vector_count = (pci_read(slot, at) >> 16 & 0x7ff) + 1;
            pci_write(slot, at, (pci_read(slot, at) | MSIX_ON) & ~MSIX_MASKED);
        }
    }
    return own;
}

static uint32_t offered(volatile uint8_t *common, uint32_t part)
{
    *word(common, FEATURES_ASKED) = part;
    return *word(common, FEATURES_OFFERED);
}

static void take(volatile uint8_t *common, uint32_t part, uint32_t features)
{
    *word(common, FEATURES_CHOSEN) = part;
    *word(common, FEATURES_TAKEN) = features;
}

static int begin_with(uint32_t slot, struct virtio_disk *disk)
{
    volatile uint8_t *common, *own;
    uint32_t features;

    pci_enable(slot);
    *disk = (struct virtio_disk){0};
    own = read_capabilities(slot, disk);
    if (!disk->common || !disk->notify || !own)
        return fault("disk", "at PCI slot ", slot >> 3, " is not virtio 1.0 below 4 GiB");
    common = disk->common;
    common[STATUS] = 0;
    while (common[STATUS])
        cpu_relax();
    common[STATUS] = ACKNOWLEDGED;
    common[STATUS] = ACKNOWLEDGED | DRIVER;
    features = offered(common, 0);
    if (!(features & INDIRECT) || !(offered(common, 1) & VERSION_1))
        return fault("disk", "at PCI slot ", slot >> 3, " has no indirect descriptors");
    take(common, 0, features & (BLOCK_READ_ONLY | BLOCK_QUEUES | INDIRECT | EVENT_INDEX));
    take(common, 1, VERSION_1);
    common[STATUS] = ACKNOWLEDGED | DRIVER | FEATURES_OK;
    if (!(common[STATUS] & FEATURES_OK))
        return fault("disk", "at PCI slot ", slot >> 3, " refuses the features");
    *half(common, CONFIG_VECTOR) = NO_VECTOR;
    disk->event_index = !!(features & EVENT_INDEX);
    disk->read_only = !!(features & BLOCK_READ_ONLY);
    disk->sectors = *word(own, 0) | (uint64_t)*word(own, 4) << 32;
    disk->queues = *half(common, QUEUES);
    return 0;
}

int virtio_find(struct virtio_disk *disks)
{
    int count = 0;

    for (uint32_t slot = 0; slot < PCI_SLOTS; slot++) {
        const uint32_t identity = pci_identity(slot);

        if (identity != (VENDOR | (uint32_t)BLOCK_MODERN << 16) &&
            identity != (VENDOR | (uint32_t)BLOCK_TRANSITIONAL << 16))
            continue;
        if (count == MOST_DISKS)
            return fault("disk", "there are more than ", MOST_DISKS, "");
        if (begin_with(slot, &disks[count]))
            return -1;
        count++;
    }
    return count;
}

uint32_t virtio_queue_places(const struct virtio_disk *disk, uint32_t number)
{
    if (number >= disk->queues)
        return 0;
    *half(disk->common, QUEUE_CHOSEN) = (uint16_t)number;
    return *half(disk->common, QUEUE_SIZE);
}

static uint32_t in_pages(uint32_t bytes)
{
    return (bytes + PAGE - 1) & ~(uint32_t)(PAGE - 1);
}

/* Descriptors, then flags, index, places and the event's index of what is available. */
static uint32_t first_bytes(uint32_t places)
{
    return in_pages(places * sizeof(struct virtio_descriptor) + 6 + 2 * places);
}

uint32_t virtio_queue_bytes(uint32_t places)
{
    return first_bytes(places) + in_pages(6 + 8 * places);
}

int virtio_queue_set_up(const struct virtio_disk *disk, uint32_t number, uint64_t memory,
                        int vector, struct virtio_queue *queue)
{
    volatile uint8_t *common = disk->common;
    const uint32_t places = virtio_queue_places(disk, number);
    const uint64_t available = memory + places * sizeof(struct virtio_descriptor);
    const uint64_t used = memory + first_bytes(places);

    if (vector && (!disk->vectors || number >= disk->vector_count))
        return fault("io_wait", "there is no interrupt for queue ", number, "");
    set_address(common, QUEUE_DESCRIPTORS, memory);
    set_address(common, QUEUE_AVAILABLE, available);
    set_address(common, QUEUE_USED, used);
    *half(common, QUEUE_VECTOR) = vector ? (uint16_t)number : NO_VECTOR;
    if (vector && *half(common, QUEUE_VECTOR) != number)
        return fault("io_wait", "the disk takes no interrupt for queue ", number, "");
    *queue = (struct virtio_queue){
        .size = places,
        .descriptors = (volatile struct virtio_descriptor *)memory,
        .available = (volatile uint16_t *)available,
        .used = (volatile uint16_t *)used,
        .doorbell = half(disk->notify,
                         *half(common, QUEUE_NOTIFY_OFFSET) * disk->notify_multiplier),
        .number = number,
        .event_index = disk->event_index,
    };
    virtio_want_interrupt(queue, 0);
    *half(common, QUEUE_ON) = 1;
    return 0;
}

void virtio_begin(const struct virtio_disk *disk)
{
    disk->common[STATUS] = ACKNOWLEDGED | DRIVER | FEATURES_OK | DRIVER_OK;
}

void virtio_aim(const struct virtio_disk *disk, uint32_t number, uint32_t apic_id,
                uint32_t vector)
{
    volatile uint32_t *entry = disk->vectors + 4 * number;

    entry[0] = 0xfee00000 | apic_id << 12;
    entry[1] = 0;
    entry[2] = vector;
    entry[3] = 0;
}

void virtio_prepare(struct virtio_queue *queue, uint32_t place, struct virtio_request *request,
                    uint64_t data, uint32_t bytes)
{
    volatile struct virtio_descriptor *descriptor = queue->descriptors + place;

    request->header.reserved = 0;
    request->table[0] = (struct virtio_descriptor){
        (uint64_t)&request->header, sizeof request->header, DESCRIPTOR_NEXT, 1};
    request->table[1] = (struct virtio_descriptor){data, bytes, DESCRIPTOR_NEXT, 2};
    request->table[2] = (struct virtio_descriptor){
        (uint64_t)&request->status, 1, DESCRIPTOR_WRITTEN, 0};
    descriptor->address = (uint64_t)request->table;
    descriptor->length = sizeof request->table;
    descriptor->flags = DESCRIPTOR_INDIRECT;
    descriptor->next = 0;
}

void virtio_add(struct virtio_queue *queue, uint32_t place, struct virtio_request *request,
                int write, uint64_t sector)
{
    request->header.type = write ? 1 : 0;
    request->header.sector = sector;
    request->table[1].flags = write ? DESCRIPTOR_NEXT : DESCRIPTOR_NEXT | DESCRIPTOR_WRITTEN;
    request->status = 0xff;
    queue->available[2 + queue->next % queue->size] = (uint16_t)place;
    queue->next++;
}

int virtio_submit(struct virtio_queue *queue)
{
    const uint16_t before = queue->made_available, now = queue->next;
    int wake;

    if (before == now)
        return 0;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    queue->available[1] = now;
    queue->made_available = now;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (queue->event_index) {
        const uint16_t event = queue->used[2 + 4 * queue->size];

        wake = (uint16_t)(now - event - 1) < (uint16_t)(now - before);
    } else {
        wake = !(queue->used[0] & NO_NOTIFY);
    }
    if (wake)
        *queue->doorbell = (uint16_t)queue->number;
    return wake;
}

int32_t virtio_take(struct virtio_queue *queue)
{
    const volatile uint32_t *entries = (const volatile uint32_t *)(queue->used + 2);
    uint32_t place;

    if (queue->used[1] == queue->taken)
        return -1;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    place = entries[2 * (queue->taken % queue->size)];
    queue->taken++;
    if (queue->event_index)
        /* The one before: it is behind, so that it asks for nothing. */
        queue->available[2 + queue->size] = (uint16_t)(queue->taken - 1);
    return (int32_t)place;
}

int virtio_want_interrupt(struct virtio_queue *queue, int wanted)
{
    if (queue->event_index)
        queue->available[2 + queue->size] =
            wanted ? queue->taken : (uint16_t)(queue->taken - 1);
    else
        queue->available[0] = wanted ? 0 : NO_INTERRUPT;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return queue->used[1] != queue->taken;
}
