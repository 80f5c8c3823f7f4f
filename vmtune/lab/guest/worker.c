#include "worker.h"

#include "beat.h"
#include "clock.h"
#include "cpus.h"
#include "disk.h"
#include "draw.h"
#include "halt.h"
#include "line.h"
#include "ports.h"

/* All workers together write a line this often at most: one costs half a millisecond and more. */
#define REPORT_MS 20
/* How long to write before looking at the clock. */
#define TURN_US 500
/* At most so many writes: they get slower at once by much when QEMU begins to track them. */
#define MOST_WRITES 256
/* Shorter waits are not worth a halt. */
#define SHORTEST_HALT_US 100
/* How long the disk rests between two turns. */
#define DISK_REST_US 5000
/* A worker that has fallen behind its rate by more does not make up for it. */
#define BACKLOG_MS 50

struct worker {
    uint32_t number;
    uint64_t from, to;                  /* its part of the region */

    int may_halt;                       /* it is in ring 0 */
    int has_disk;                       /* and this worker writes to it */
    int watches_clock;                  /* while it writes */
    uint32_t writes, most_writes;       /* between two looks at the clock */
    uint64_t turn_ticks;

    uint64_t page_ticks;                /* at its share of the dirty rate, in 1/256; 0: no limit */
    uint64_t due;                       /* when it may go on */
    uint64_t due_part;                  /* in 1/256 tick */

    uint64_t beat_ticks;                /* 0: no heartbeat */
    uint64_t next_beat;

    uint64_t pass;                      /* from 1 */
    uint64_t wrong;                     /* words, in all passes, of memory and disk */
    uint64_t unreported;                /* passes; what follows is theirs */
    uint64_t worked, longest, ended;
    uint64_t report_ticks;
    uint64_t reported;                  /* when last */

    uint64_t pages;                     /* of its part */
    uint64_t drawn;                     /* random, never 0 */
    uint64_t draws;                     /* so far */
};

struct job job;

static uint32_t laid_out;
static uint32_t begun;
static uint64_t beginning;

static void beat(struct worker *worker, uint64_t now)
{
    const int64_t left = (int64_t)(worker->next_beat - now);

    if (!worker->beat_ticks)
        return;
    if (left > 0 && left <= (int64_t)worker->beat_ticks)
        return;
    port_write(BEAT_PORT, (uint8_t)('0' + worker->number));
    /* In step with the beats before, unless there was a silence or the clock has jumped. */
    worker->next_beat += worker->beat_ticks;
    if (worker->next_beat - now - 1 >= worker->beat_ticks)
        worker->next_beat = now + worker->beat_ticks;
}

/*
 * Passes that are over: at most a line every report_ticks, and never in another's line. Short
 * passes do not wait for another's line to end: their report comes with the next.
 */
static void report(struct worker *worker, uint64_t now)
{
    const uint32_t khz = job.ticks_per_ms;
    struct line line;

    if (!worker->unreported)
        return;
    if (worker->reported && now - worker->reported < worker->report_ticks)
        return;
    line.length = 0;
    line_text(&line, "pass ");
    line_number(&line, worker->number);
    line_text(&line, " ");
    line_number(&line, worker->pass);
    line_field(&line, "end_us",
               clock_microseconds(clock_between(beginning, worker->ended), khz));
    line_field(&line, "us", clock_microseconds(worker->worked, khz));
    if (worker->unreported > 1) {
        line_field(&line, "passes", worker->unreported);
        line_field(&line, "longest_us", clock_microseconds(worker->longest, khz));
    }
    if (job.settings.check)
        line_field(&line, "wrong", worker->wrong);
    while (!line_try_send(&line)) {
        if (worker->worked < worker->report_ticks)
            return;
        cpu_relax();
        beat(worker, read_tsc());
    }
    worker->reported = now;
    worker->unreported = worker->worked = worker->longest = 0;
}

/* Let some of the `ticks` that are to be waited go by, not beyond the next beat. */
static void wait_some(const struct worker *worker, uint64_t now, uint64_t ticks)
{
    const uint64_t to_beat = worker->next_beat - now;
    uint64_t us;

    if (worker->beat_ticks && to_beat < ticks)
        ticks = to_beat;
    us = clock_microseconds(ticks, job.ticks_per_ms);
    if (worker->may_halt && us >= SHORTEST_HALT_US)
        halt_for_us(us);
    else
        cpu_relax();
}

/* Wait until the rate allows what was written: `units` of which a page has PAGE. */
static uint64_t keep_rate(struct worker *worker, uint64_t now, uint64_t units)
{
    const uint64_t backlog = (uint64_t)BACKLOG_MS * job.ticks_per_ms;
    const uint64_t cost = worker->due_part + units * worker->page_ticks / PAGE;
    const uint64_t most = (cost >> 8) + (uint64_t)1000 * job.ticks_per_ms;

    worker->due += cost >> 8;
    worker->due_part = cost & 0xff;
    if ((int64_t)(now - worker->due) > (int64_t)backlog)
        worker->due = now - backlog;
    /* Further ahead than that it is only if the clock has jumped back. */
    while ((int64_t)(worker->due - now) > 0 && worker->due - now <= most) {
        wait_some(worker, now, worker->due - now);
        now = read_tsc();
        beat(worker, now);
    }
    if ((int64_t)(worker->due - now) > 0)
        worker->due = now;
    return now;
}

static uint64_t look_at_clock(struct worker *worker, uint64_t before, uint64_t units)
{
    const uint64_t now = read_tsc();
    const uint64_t took = now - before;

    if (took > 2 * worker->turn_ticks && worker->writes > 1)
        worker->writes /= 2;
    else if (took < worker->turn_ticks / 2 && 2 * worker->writes <= worker->most_writes)
        worker->writes *= 2;
    beat(worker, now);
    return worker->page_ticks ? keep_rate(worker, now, units) : now;
}

/* From one write to the next; a page that is written whole is one write. */
static uint64_t spacing(void)
{
    return job.content.stride <= DENSE_STRIDE ? PAGE : job.content.stride;
}

static void go_over_part(struct worker *worker)
{
    const uint64_t step = spacing();
    uint64_t before = read_tsc();

    if (!worker->watches_clock) {
        worker->wrong += content_wrong(&job.content, worker->from, worker->to, worker->pass);
        content_write(&job.content, worker->from, worker->to, worker->pass);
        return;
    }
    for (uint64_t at = worker->from; at < worker->to;) {
        uint64_t limit = at + worker->writes * step, next;

        if (limit > worker->to)
            limit = worker->to;
        worker->wrong += content_wrong(&job.content, at, limit, worker->pass);
        next = content_write(&job.content, at, limit, worker->pass);
        before = look_at_clock(worker, before,
                               step > PAGE ? (next - at) / step * PAGE : next - at);
        at = next;
    }
}

/* As many pages as its part has, each drawn anew. */
static void go_over_drawn(struct worker *worker)
{
    uint64_t before = read_tsc();

    for (uint64_t written = 0; written < worker->pages;) {
        uint64_t turn = worker->pages - written;

        if (worker->watches_clock && turn > worker->writes)
            turn = worker->writes;
        for (uint64_t n = 0; n < turn; n++) {
            const uint64_t at = worker->from + draw_page(&worker->drawn, worker->pages, job.settings.skew_percent) * PAGE;

            /* Not the pass: who compares pages would not see the second write of one. */
            content_write(&job.content, at, at + PAGE < worker->to ? at + PAGE : worker->to,
                          ++worker->draws);
        }
        written += turn;
        if (worker->watches_clock)
            before = look_at_clock(worker, before, turn * PAGE);
    }
}

static void rest(struct worker *worker)
{
    const uint64_t begin = read_tsc();
    const uint64_t ticks = (uint64_t)job.settings.idle_ms * job.ticks_per_ms;
    const uint64_t disk_rest = (uint64_t)DISK_REST_US * job.ticks_per_ms / 1000;
    uint64_t now = begin;

    report(worker, now);
    while ((now = read_tsc()) - begin < ticks) {
        uint64_t left = ticks - (now - begin);

        if (worker->unreported && left > worker->report_ticks)
            left = worker->report_ticks;
        if (worker->has_disk) {
            worker->wrong += disk_turn();
            if (left > disk_rest)
                left = disk_rest;
        }
        wait_some(worker, now, left);
        now = read_tsc();
        beat(worker, now);
        report(worker, now);
    }
    if (ticks)
        worker->due += now - begin;
}

static void set_up(struct worker *worker, uint32_t number)
{
    const struct settings *settings = &job.settings;
    const uint64_t pages = (settings->region_bytes + PAGE - 1) / PAGE;
    const uint64_t end = job.content.region + settings->region_bytes;
    const uint64_t khz = job.ticks_per_ms;
    uint64_t write_ticks;

    *worker = (struct worker){.number = number, .writes = 1, .most_writes = MOST_WRITES};
    worker->from = job.content.region + pages * number / job.workers * PAGE;
    worker->to = job.content.region + pages * (number + 1) / job.workers * PAGE;
    if (worker->to > end)
        worker->to = end;
    worker->pages = (worker->to - worker->from + PAGE - 1) / PAGE;
    worker->drawn = read_tsc() * 2 + 1;
    worker->turn_ticks = khz * TURN_US / 1000;
    worker->beat_ticks = khz * settings->beat_ms;
    worker->report_ticks = khz * REPORT_MS * job.workers;
    if (settings->dirty_mb)
        worker->page_ticks = khz * PAGE * job.workers / 1000 * 256 / settings->dirty_mb;
    /* Not more at once than what the rate allows for that time. */
    write_ticks = worker->page_ticks * (spacing() < PAGE ? spacing() : PAGE) / PAGE;
    if (write_ticks * MOST_WRITES > worker->turn_ticks * 256)
        worker->most_writes = (uint32_t)(worker->turn_ticks * 256 / write_ticks);
    if (!worker->most_writes)
        worker->most_writes = 1;
    worker->watches_clock = settings->beat_ms || settings->dirty_mb;
}

static void report_start(void)
{
    const struct settings *settings = &job.settings;
    struct line line;

    line.length = 0;
    line_text(&line, "start");
    line_field(&line, "region", settings->region_bytes);
    line_field(&line, "stride", settings->stride_bytes);
    line_field(&line, "idle_ms", settings->idle_ms);
    line_field(&line, "dirty_mb", settings->dirty_mb);
    line_field(&line, "zero", settings->zero_percent);
    line_field(&line, "random", settings->random_percent);
    line_field(&line, "beat_ms", settings->beat_ms);
    line_field(&line, "check", settings->check);
    line_field(&line, "ring", settings->ring);
    line_field(&line, "skew", settings->skew_percent);
    line_field(&line, "workers", job.workers);
    line_field(&line, "address", job.content.region);
    line_field(&line, "tsc_khz", job.ticks_per_ms);
    line_send(&line);
}

/* All begin together, once every part is laid out. */
static void wait_for_all(uint32_t number)
{
    __atomic_add_fetch(&laid_out, 1, __ATOMIC_SEQ_CST);
    if (number == 0) {
        while (__atomic_load_n(&laid_out, __ATOMIC_SEQ_CST) < job.workers)
            cpu_relax();
        report_start();
        beginning = read_tsc();
        __atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);
    }
    while (!__atomic_load_n(&begun, __ATOMIC_SEQ_CST))
        cpu_relax();
}

void worker_run(uint32_t number)
{
    struct worker worker;

    /* Laying out in ring 0 takes some KVMs a thousand times as long, and of the ways back from
       ring 3 there is none that they all know. */
    const int to_ring_3 =
        job.settings.ring || job.settings.zero_percent || job.settings.random_percent;

    if (to_ring_3)
        enter_ring_3();
    else
        halt_set_up();
    set_up(&worker, number);
    worker.may_halt = !to_ring_3;
    worker.has_disk = number == 0 && job.settings.check && disk_present();
    content_lay_out(&job.content, worker.from, worker.to);
    /* Passes of drawn pages leave some out: all of the region is in use from the beginning. */
    if (job.settings.skew_percent)
        content_write(&job.content, worker.from, worker.to, 0);
    wait_for_all(number);
    worker.due = worker.next_beat = read_tsc();
    for (;;) {
        const uint64_t begin = read_tsc();
        uint64_t took;

        worker.pass++;
        if (job.settings.skew_percent)
            go_over_drawn(&worker);
        else
            go_over_part(&worker);
        worker.ended = read_tsc();
        took = clock_between(begin, worker.ended);
        worker.unreported++;
        worker.worked += took;
        if (took > worker.longest)
            worker.longest = took;
        rest(&worker);
    }
}
