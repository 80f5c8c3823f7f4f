#include "io.h"

#include <stddef.h>

#include "beat.h"
#include "clock.h"
#include "cpus.h"
#include "fault.h"
#include "halt.h"
#include "latency.h"
#include "line.h"
#include "ports.h"
#include "virtio.h"
#include "worker.h"

#define MOST_LANES 256
#define PAGE 4096
/* How long answers may take once no more requests are made. */
#define DRAIN_MS 30000
/* The longest halt: an interrupt ends it before. */
#define LONGEST_HALT_US 20000
#define NO_BLOCK UINT64_MAX
#define DRAWS 16

enum phase { RAMP, COUNTING, ENDED };

struct place {
    struct virtio_request request;
    uint64_t begun, block;
    uint64_t *data;
    int write;
} __attribute__((aligned(16)));

/* One queue, and all that is under way there. */
struct lane {
    const struct virtio_disk *disk;
    struct virtio_queue queue;
    uint32_t count;                     /* of requests under way at once */
    struct place *places;
    uint64_t from, blocks;              /* its stretch of the disk */
    uint64_t drawn, position;
    uint32_t *versions;                 /* of each block, with io_check; odd: it is being written */
    uint32_t *readers;
    uint32_t under_way;
    uint64_t errors, wrong, wakes;
    struct latency *read, *write;
};

static struct virtio_disk disks[MOST_DISKS];
static struct lane lanes[MOST_LANES];
static uint32_t disk_count, lane_count, ready, finished;
static volatile uint32_t phase, begun;
static uint64_t interrupts;

/* --- setting up, by one processor --- */

static uint64_t free_from, free_to;

/* Memory in whole pages, whatever it holds; 0: there is not as much. */
static uint64_t allocate_any(uint64_t bytes)
{
    const uint64_t at = free_from;

    bytes = (bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    if (bytes > free_to - free_from)
        return 0;
    free_from += bytes;
    return at;
}

/* Likewise, of zeros: firmware may have left something there. */
static uint64_t allocate(uint64_t bytes)
{
    const uint64_t at = allocate_any(bytes);
    uint64_t to = at, words = at ? (bytes + 7) / 8 : 0;

    __asm__ volatile("rep stosq" : "+D"(to), "+c"(words) : "a"(0) : "memory");
    return at;
}

static struct lane *lane_of(const struct virtio_disk *disk, uint32_t queue)
{
    for (uint32_t i = 0; i < lane_count; i++)
        if (lanes[i].disk == disk && lanes[i].queue.number == queue)
            return &lanes[i];
    return NULL;
}

static int deal_out_jobs(void)
{
    for (uint32_t job_number = 0; job_number < job.settings.io_jobs; job_number++) {
        const struct virtio_disk *disk = &disks[job_number % disk_count];
        const uint32_t queue = job_number / disk_count % disk->queues;
        struct lane *lane = lane_of(disk, queue);

        if (!lane) {
            if (lane_count == MOST_LANES)
                return fault("io_jobs", "use more than ", MOST_LANES, " queues");
            lane = &lanes[lane_count++];
            *lane = (struct lane){.disk = disk, .queue.number = queue};
        }
        lane->count += job.settings.io_depth;
    }
    return 0;
}

/* How many lanes the disk of a lane has, and which of them it is. */
static uint32_t shares(const struct lane *lane, uint32_t *which)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < lane_count; i++) {
        if (&lanes[i] == lane)
            *which = count;
        count += lanes[i].disk == lane->disk;
    }
    return count;
}

static int set_up_stretch(struct lane *lane)
{
    const struct settings *settings = &job.settings;
    const uint64_t blocks = lane->disk->sectors / (settings->io_block_bytes / SECTOR_BYTES);
    uint32_t which = 0;
    const uint32_t all = shares(lane, &which);

    lane->from = 0;
    lane->blocks = blocks;
    if (settings->io_check || settings->io_sequential) {
        lane->from = blocks * which / all;
        lane->blocks = blocks * (which + 1) / all - lane->from;
    }
    if (!lane->blocks || (settings->io_check && lane->blocks < 2 * (uint64_t)lane->count))
        return fault("io_block", "the disk has only ", lane->blocks, " blocks for a queue");
    if (settings->io_write_percent && lane->disk->read_only)
        return fault_text("io_write", UINT32_MAX, "the disk is read-only");
    if (!settings->io_check)
        return 0;
    lane->versions = (uint32_t *)allocate(lane->blocks * sizeof *lane->versions);
    lane->readers = (uint32_t *)allocate(lane->blocks * sizeof *lane->readers);
    return lane->versions && lane->readers ? 0 : -2;
}

static int set_up_lane(struct lane *lane)
{
    const uint32_t bytes = job.settings.io_block_bytes;
    const uint32_t number = lane->queue.number;
    const uint32_t places = virtio_queue_places(lane->disk, number);
    uint64_t memory, data;
    int result;

    if (lane->count > places)
        return fault("io_depth", "of all jobs of a queue are more than its ", places, " places");
    memory = allocate(virtio_queue_bytes(places));
    data = allocate_any((uint64_t)lane->count * bytes);
    lane->places = (struct place *)allocate(lane->count * sizeof *lane->places);
    lane->read = (struct latency *)allocate(sizeof *lane->read);
    lane->write = (struct latency *)allocate(sizeof *lane->write);
    if (!memory || !data || !lane->places || !lane->read || !lane->write)
        return -2;
    result = set_up_stretch(lane);
    if (result)
        return result;
    if (virtio_queue_set_up(lane->disk, number, memory, (int)job.settings.io_wait, &lane->queue))
        return -1;
    for (uint32_t i = 0; i < lane->count; i++) {
        struct place *place = &lane->places[i];

        place->data = (uint64_t *)(data + (uint64_t)i * bytes);
        virtio_prepare(&lane->queue, i, &place->request, (uint64_t)place->data, bytes);
    }
    lane->drawn = (read_tsc() + (uint64_t)(lane - lanes) * 0x9e3779b97f4a7c15) | 1;
    return 0;
}

int io_set_up(struct memory_area memory)
{
    int found = virtio_find(disks);

    if (found < 0)
        return -1;
    if (!found)
        return fault_text("disk", UINT32_MAX, "there is no virtio-blk disk");
    disk_count = (uint32_t)found;
    free_from = memory.start;
    free_to = memory.start + memory.size;
    if (deal_out_jobs())
        return -1;
    for (uint32_t i = 0; i < lane_count; i++) {
        const int result = set_up_lane(&lanes[i]);

        if (result == -2)
            return fault("io_depth", "does not fit into the largest free stretch of ",
                         memory.size, " bytes");
        if (result)
            return -1;
    }
    for (uint32_t i = 0; i < disk_count; i++)
        virtio_begin(&disks[i]);
    return 0;
}

/* --- the load, by all processors --- */

static uint64_t draw(struct lane *lane)
{
    lane->drawn ^= lane->drawn << 13;
    lane->drawn ^= lane->drawn >> 7;
    lane->drawn ^= lane->drawn << 17;
    return lane->drawn >> 16;
}

static uint64_t word_of(uint64_t block, uint32_t version, uint32_t place)
{
    return version ? (block << 32 | version) ^ place * 0x9e3779b97f4a7c15 : 0;
}

/* The block of the next request; NO_BLOCK where others are under way at all that were drawn. */
static uint64_t next_block(struct lane *lane, int write)
{
    for (uint32_t i = 0; i < DRAWS + lane->count; i++) {
        const uint64_t at = job.settings.io_sequential ? lane->position++ % lane->blocks
                                                       : draw(lane) % lane->blocks;

        if (!lane->versions)
            return at;
        /* Who writes is alone: what a reader sees would be either. */
        if (lane->versions[at] & 1 || (write && lane->readers[at]))
            continue;
        if (write)
            lane->versions[at]++;
        else
            lane->readers[at]++;
        return at;
    }
    return NO_BLOCK;
}

static void make_request(struct lane *lane, uint32_t number)
{
    const uint32_t bytes = job.settings.io_block_bytes;
    struct place *place = &lane->places[number];
    int write = draw(lane) % 100 < job.settings.io_write_percent;
    uint64_t at = next_block(lane, write);

    if (at == NO_BLOCK) {
        /* A block that is only read never has to wait for long: try that. */
        write = 0;
        while ((at = next_block(lane, 0)) == NO_BLOCK)
            ;
    }
    place->block = at;
    place->write = write;
    if (write && lane->versions)
        for (uint32_t i = 0; i < bytes / 8; i++)
            place->data[i] = word_of(lane->from + at, lane->versions[at] + 1, i);
    place->begun = read_tsc();
    virtio_add(&lane->queue, number, &place->request, write,
               (lane->from + at) * (bytes / SECTOR_BYTES));
}

static void check(struct lane *lane, struct place *place)
{
    const uint64_t at = place->block;

    if (place->write) {
        lane->versions[at]++;
        return;
    }
    lane->readers[at]--;
    for (uint32_t i = 0; i < job.settings.io_block_bytes / 8; i++)
        lane->wrong += place->data[i] != word_of(lane->from + at, lane->versions[at], i);
}

/* Take all answers, and make as many requests; how many that were. */
static uint32_t turn(struct lane *lane)
{
    const uint32_t now = phase;
    uint32_t answers = 0;
    int32_t number;

    while ((number = virtio_take(&lane->queue)) >= 0) {
        struct place *place = &lane->places[number];

        if (place->request.status)
            lane->errors++;
        else if (now == COUNTING)
            latency_add(place->write ? lane->write : lane->read,
                        clock_between(place->begun, read_tsc()));
        if (lane->versions)
            check(lane, place);
        answers++;
        if (now == ENDED)
            lane->under_way--;
        else
            make_request(lane, (uint32_t)number);
    }
    lane->wakes += (uint64_t)virtio_submit(&lane->queue);
    return answers;
}

/* Wait for an interrupt of one of the worker's disks, unless an answer is there. */
static void wait_for_interrupt(uint32_t number)
{
    int there = 0;

    for (uint32_t i = number; i < lane_count; i += job.workers)
        there |= virtio_want_interrupt(&lanes[i].queue, 1);
    if (!there && halt_for_us(LONGEST_HALT_US))
        __atomic_add_fetch(&interrupts, 1, __ATOMIC_RELAXED);
    for (uint32_t i = number; i < lane_count; i += job.workers)
        virtio_want_interrupt(&lanes[i].queue, 0);
}

static void send(struct line *line)
{
    line->text[line->length++] = '\n';
    port_write_bytes(BEAT_PORT, line->text, line->length);
    line->length = 0;
}

static void tell_start(void)
{
    struct line line = {.length = 0};
    uint32_t requests = 0;

    for (uint32_t i = 0; i < lane_count; i++)
        requests += lanes[i].count;
    line_text(&line, "io start");
    line_field(&line, "block", job.settings.io_block_bytes);
    line_field(&line, "disks", disk_count);
    line_field(&line, "queues", lane_count);
    line_field(&line, "places", lanes[0].queue.size);
    line_field(&line, "requests", requests);
    line_field(&line, "bytes", lanes[0].disk->sectors * SECTOR_BYTES);
    line_field(&line, "event_index", (uint64_t)lanes[0].queue.event_index);
    line_field(&line, "tsc_khz", job.ticks_per_ms);
    send(&line);
}

static void tell(const char *what, const char *name, uint64_t value)
{
    struct line line = {.length = 0};

    line_text(&line, "io ");
    line_text(&line, what);
    if (name)
        line_field(&line, name, value);
    send(&line);
}

static void tell_latency(const char *what, const struct latency *latency)
{
    struct line line = {.length = 0};

    line_text(&line, "io ");
    line_text(&line, what);
    line_field(&line, "requests", latency->requests);
    line_field(&line, "sum", latency->sum);
    line_field(&line, "least", latency->least);
    line_field(&line, "most", latency->most);
    send(&line);
    for (uint32_t i = 0; i < LATENCY_BINS; i++) {
        if (!latency->bins[i])
            continue;
        if (line.length > sizeof line.text - 40)
            send(&line);
        if (!line.length) {
            line_text(&line, "io ");
            line_text(&line, what);
            line_text(&line, "_bins");
        }
        line_text(&line, " ");
        line_number(&line, i);
        line_text(&line, "=");
        line_number(&line, latency->bins[i]);
    }
    if (line.length)
        send(&line);
}

static void tell_results(void)
{
    struct line line = {.length = 0};
    uint64_t errors = 0, wrong = 0, wakes = 0;

    for (uint32_t i = 0; i < lane_count; i++) {
        errors += lanes[i].errors;
        wrong += lanes[i].wrong;
        wakes += lanes[i].wakes;
        if (!i)
            continue;
        latency_merge(lanes[0].read, lanes[i].read);
        latency_merge(lanes[0].write, lanes[i].write);
    }
    tell_latency("read", lanes[0].read);
    tell_latency("write", lanes[0].write);
    line_text(&line, "io done");
    line_field(&line, "errors", errors);
    line_field(&line, "wrong", wrong);
    line_field(&line, "wakes", wakes);
    line_field(&line, "interrupts", interrupts);
    send(&line);
}

/* The first worker's clock, by which all go on. */
struct course {
    uint64_t since, told;
};

static void keep_course(struct course *course, uint64_t now)
{
    const struct settings *settings = &job.settings;
    const uint64_t khz = job.ticks_per_ms;
    const uint64_t passed = clock_between(course->since, now);

    if (phase == RAMP && passed >= settings->io_ramp_ms * khz) {
        course->since = course->told = now;
        phase = COUNTING;
        tell("counting", NULL, 0);
    } else if (phase == COUNTING && passed >= settings->io_ms * khz) {
        phase = ENDED;
        tell("ended", "us", clock_microseconds(passed, job.ticks_per_ms));
    } else if (phase == COUNTING && settings->beat_ms &&
               clock_between(course->told, now) >= settings->beat_ms * khz) {
        uint64_t requests = 0;

        course->told = now;
        for (uint32_t i = 0; i < lane_count; i++)
            requests += lanes[i].read->requests + lanes[i].write->requests;
        tell("so_far", "requests", requests);
    }
}

static void wait_for_all(uint32_t number)
{
    __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
    if (number == 0) {
        while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < job.workers)
            cpu_relax();
        tell_start();
        begun = 1;
    }
    while (!begun)
        cpu_relax();
}

/* Whether nothing of this worker's is under way. */
static int drained(uint32_t number)
{
    for (uint32_t i = number; i < lane_count; i += job.workers)
        if (lanes[i].under_way)
            return 0;
    return 1;
}

static void load(uint32_t number)
{
    struct course course = {.since = read_tsc()};
    uint64_t ended = 0;

    for (uint32_t i = number; i < lane_count; i += job.workers) {
        lanes[i].under_way = lanes[i].count;
        for (uint32_t place = 0; place < lanes[i].count; place++)
            make_request(&lanes[i], place);
        lanes[i].wakes += (uint64_t)virtio_submit(&lanes[i].queue);
    }
    while (phase != ENDED || !drained(number)) {
        uint32_t answers = 0;

        for (uint32_t i = number; i < lane_count; i += job.workers)
            answers += turn(&lanes[i]);
        if (number == 0)
            keep_course(&course, read_tsc());
        if (!answers && job.settings.io_wait)
            wait_for_interrupt(number);
        else if (!answers)
            cpu_relax();
        if (phase != ENDED)
            continue;
        if (!ended)
            ended = read_tsc();
        if (clock_between(ended, read_tsc()) > (uint64_t)DRAIN_MS * job.ticks_per_ms) {
            fault("disk", "has not answered for ", DRAIN_MS, " ms");
            for (;;)
                cpu_relax();
        }
    }
}

void io_run(uint32_t number)
{
    const int waits = (int)job.settings.io_wait;

    if (number >= lane_count && number) {
        __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&finished, 1, __ATOMIC_SEQ_CST);
        return;                         /* nothing for this processor: it halts */
    }
    if (waits) {
        halt_set_up();
        for (uint32_t i = number; i < lane_count; i += job.workers)
            virtio_aim(lanes[i].disk, lanes[i].queue.number, cpus_apic_id(), DISK_VECTOR);
    } else {
        enter_ring_3();
    }
    wait_for_all(number);
    load(number);
    __atomic_add_fetch(&finished, 1, __ATOMIC_SEQ_CST);
    if (number == 0) {
        while (__atomic_load_n(&finished, __ATOMIC_SEQ_CST) < job.workers)
            cpu_relax();
        tell_results();
    }
    while (!waits)                      /* who is in ring 3 cannot halt */
        cpu_relax();
}
