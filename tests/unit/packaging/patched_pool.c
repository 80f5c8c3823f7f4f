/*
 * The patched QEMU's vmtune-pool.c.inc in a world of its own: threads that take turns, and a clock.
 *
 * Thread 0 is the main thread, 1 and 2 are iothreads, 3 is a vCPU with the BQL, 4 a thread with no
 * event loop. A mutex that its holder takes again, or that is held when a thread's turn ends, fails.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 5, BATCH = 8 };
static int me;
static int64_t now_ms;

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define likely(x) (x)
#define unlikely(x) (x)
#define IS_ENABLED(x) 1
#define QEMU_ALIGNED(n) __attribute__((aligned(n)))
#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))
#define qatomic_read(p) (*(p))
#define qatomic_set(p, v) ((void)(*(p) = (v)))
#define qatomic_inc(p) ((void)++*(p))
#define qatomic_dec(p) ((void)--*(p))
#define qatomic_add(p, v) ((void)(*(p) += (v)))
#define qatomic_sub(p, v) ((void)(*(p) -= (v)))
#define g_autofree
static bool g_file_get_contents(const char *path, char **text, void *a, void *b) { return false; }
static uint64_t g_ascii_strtoull(const char *text, void *end, int base) { return 0; }

typedef struct QemuMutex { bool held; } QemuMutex;
static void qemu_mutex_init(QemuMutex *m) { m->held = false; }
static QemuMutex *lock(QemuMutex *m) { assert(!m->held); m->held = true; return m; }
static void unlock(QemuMutex **m) { if (*m) { assert((*m)->held); (*m)->held = false; } }
#define GUARD_(m, n) __attribute__((cleanup(unlock), unused)) QemuMutex *guard##n = lock(m)
#define GUARD(m, n) GUARD_(m, n)
#define QEMU_LOCK_GUARD(m) GUARD(m, __LINE__)
#define WITH_QEMU_LOCK_GUARD(m) \
    for (__attribute__((cleanup(unlock))) QemuMutex *with = lock(m), *once = with; once; once = NULL)

#define QSLIST_HEAD(name, type) struct name { struct type *first; }
#define QSLIST_HEAD_INITIALIZER(head) { NULL }
#define QSLIST_ENTRY(type) struct { struct type *next; }
#define QSLIST_FIRST(head) ((head)->first)
#define QSLIST_EMPTY(head) (!(head)->first)
#define QSLIST_INSERT_HEAD(head, e, f) ((e)->f.next = (head)->first, (head)->first = (e))
#define QSLIST_REMOVE_HEAD(head, f) ((head)->first = (head)->first->f.next)
#define QSLIST_FOREACH(e, head, f) for ((e) = (head)->first; (e); (e) = (e)->f.next)
#define QLIST_HEAD(name, type) struct name { struct type *first; }
#define QLIST_HEAD_INITIALIZER(head) { NULL }
#define QLIST_ENTRY(type) struct { struct type *next; }
#define QLIST_INSERT_HEAD(head, e, f) ((e)->f.next = (head)->first, (head)->first = (e))
#define QLIST_FOREACH(e, head, f) for ((e) = (head)->first; (e); (e) = (e)->f.next)
#define QLIST_REMOVE(e, f) remove_loop(e)

#define QEMU_DEFINE_STATIC_CO_TLS(type, name) \
    static type tls_##name[THREADS]; \
    static type *get_ptr_##name(void) { return &tls_##name[me]; }

typedef struct Notifier { void (*notify)(struct Notifier *n, void *value); } Notifier;
static Notifier *at_exit[THREADS];
static void qemu_thread_atexit_add(Notifier *n) { assert(!at_exit[me]); at_exit[me] = n; }

/* --- Event loops --- */

typedef void QEMUBHFunc(void *opaque);
typedef struct QEMUTimer { struct AioContext *ctx; QEMUBHFunc *call; void *opaque; int64_t at; } QEMUTimer;
typedef struct AioContext {
    int thread;
    struct { QEMUBHFunc *call; void *opaque; } bh[64];
    unsigned bhs;
    QEMUTimer *timers[8];
} AioContext;
static AioContext contexts[3] = { { 0 }, { 1 }, { 2 } };
#define QEMU_CLOCK_REALTIME 0
#define SCALE_MS 1

static AioContext *qemu_get_aio_context(void) { return &contexts[0]; }
static AioContext *qemu_get_current_aio_context(void)
{
    return me < 3 ? &contexts[me] : me == 3 ? &contexts[0] : NULL;
}
static int64_t qemu_clock_get_ms(int clock) { return now_ms; }

static void aio_bh_schedule_oneshot(AioContext *ctx, QEMUBHFunc *call, void *opaque)
{
    assert(ctx->bhs < 64);
    ctx->bh[ctx->bhs].call = call;
    ctx->bh[ctx->bhs++].opaque = opaque;
}

static QEMUTimer *aio_timer_new(AioContext *ctx, int clock, int scale, QEMUBHFunc *call, void *opaque)
{
    QEMUTimer *timer = malloc(sizeof(*timer));

    *timer = (QEMUTimer) { ctx, call, opaque, -1 };
    for (int i = 0; i < 8; i++) {
        if (!ctx->timers[i]) {
            return ctx->timers[i] = timer;
        }
    }
    abort();
}

static void timer_mod(QEMUTimer *timer, int64_t at) { timer->at = at; }
static void timer_del(QEMUTimer *timer) { timer->at = -1; }

static void timer_free(QEMUTimer *timer)
{
    for (int i = 0; timer && i < 8; i++) {
        if (timer->ctx->timers[i] == timer) {
            timer->ctx->timers[i] = NULL;
        }
    }
    free(timer);
}

/* --- A pool of batches, shared, and one of each thread --- */

typedef struct Coroutine { QSLIST_ENTRY(Coroutine) pool_next; } Coroutine;
typedef struct CoroutinePoolBatch {
    QSLIST_ENTRY(CoroutinePoolBatch) next;
    QSLIST_HEAD(, Coroutine) list;
    unsigned size;
} CoroutinePoolBatch;
typedef QSLIST_HEAD(, CoroutinePoolBatch) CoroutinePool;
static unsigned global_pool_hard_max_size = 100000, global_pool_size, global_pool_max_size = 100000;
static QemuMutex global_pool_lock;
static CoroutinePool global_pool;
QEMU_DEFINE_STATIC_CO_TLS(CoroutinePool, local_pool)
static unsigned there; /* made and not freed */

struct VmtuneLoop;
static void remove_loop(struct VmtuneLoop *loop);
static void vmtune_coroutine_freed(void);

static void g_free(void *p) { free(p); }
static void qemu_coroutine_delete(Coroutine *co);

#include "vmtune.h"
#include "vmtune-pool.c.inc"

static void remove_loop(VmtuneLoop *loop)
{
    VmtuneLoop **at = &vmtune_loops.first;

    while (*at != loop) {
        at = &(*at)->next.next;
    }
    *at = loop->next.next;
}

static bool turn(void);
static int interrupted = -1; /* after how many more are freed the other threads have a turn */

static void qemu_coroutine_delete(Coroutine *co)
{
    there--;
    free(co);
    if (interrupted >= 0 && !interrupted--) {
        turn();
    }
}

static CoroutinePoolBatch *coroutine_pool_batch_new(void)
{
    return calloc(1, sizeof(CoroutinePoolBatch));
}

static void coroutine_pool_batch_delete(CoroutinePoolBatch *batch)
{
    while (batch->list.first) {
        Coroutine *co = batch->list.first;

        QSLIST_REMOVE_HEAD(&batch->list, pool_next);
        batch->size--;
        qemu_coroutine_delete(co);
        vmtune_coroutine_freed();
    }
    free(batch);
}

static Coroutine *taken[4096];
static int in_use;

static void take(void)
{
    CoroutinePool *own = get_ptr_local_pool();
    CoroutinePoolBatch *batch;
    Coroutine *co;

    if (!own->first && global_pool.first) {
        batch = global_pool.first;
        QSLIST_REMOVE_HEAD(&global_pool, next);
        global_pool_size -= batch->size;
        QSLIST_INSERT_HEAD(own, batch, next);
    }
    batch = own->first;
    if (batch) {
        co = batch->list.first;
        QSLIST_REMOVE_HEAD(&batch->list, pool_next);
        if (!--batch->size) {
            QSLIST_REMOVE_HEAD(own, next);
            free(batch);
        }
    } else {
        co = malloc(sizeof(*co));
        there++;
        vmtune_coroutine_made();
    }
    vmtune_coroutine_taken();
    taken[in_use++] = co;
}

static void give(void)
{
    CoroutinePool *own = get_ptr_local_pool();
    Coroutine *co = taken[--in_use];

    if (vmtune_coroutine_given_back()) {
        qemu_coroutine_delete(co);
        vmtune_coroutine_freed();
        return;
    }
    if (own->first && own->first->size == BATCH && own->first->next.next) {
        CoroutinePoolBatch *batch = own->first;

        QSLIST_REMOVE_HEAD(own, next);
        if (global_pool_size < vmtune_global_max(global_pool_max_size)) {
            QSLIST_INSERT_HEAD(&global_pool, batch, next);
            global_pool_size += batch->size;
        } else {
            coroutine_pool_batch_delete(batch);
        }
    }
    if (!own->first || own->first->size == BATCH) {
        CoroutinePoolBatch *batch = coroutine_pool_batch_new();

        QSLIST_INSERT_HEAD(own, batch, next);
    }
    QSLIST_INSERT_HEAD(&own->first->list, co, pool_next);
    own->first->size++;
}

/* --- Turns --- */

static void called(QEMUBHFunc *call, void *opaque, int thread)
{
    int before = me;

    me = thread;
    call(opaque);
    assert(!vmtune_lock.held && !global_pool_lock.held);
    me = before;
}

static bool turn(void)
{
    bool any = false;

    for (int c = 0; c < 3; c++) {
        AioContext *ctx = &contexts[c];

        while (ctx->bhs) {
            unsigned first = --ctx->bhs;

            called(ctx->bh[first].call, ctx->bh[first].opaque, c);
            any = true;
        }
        for (int i = 0; i < 8; i++) {
            QEMUTimer *timer = ctx->timers[i];

            if (timer && timer->at >= 0 && timer->at <= now_ms) {
                timer->at = -1;
                called(timer->call, timer->opaque, c);
                any = true;
            }
        }
    }
    return any;
}

static void pass(int64_t ms)
{
    int64_t end = now_ms + ms;

    while (turn()) {
    }
    while (now_ms < end) {
        int64_t next = end;

        for (int c = 0; c < 3; c++) {
            for (int i = 0; i < 8; i++) {
                QEMUTimer *timer = contexts[c].timers[i];

                if (timer && timer->at >= 0) {
                    next = MIN(next, MAX(timer->at, now_ms));
                }
            }
        }
        now_ms = next;
        while (turn()) {
        }
    }
}

static void ends(void)
{
    CoroutinePool *own = get_ptr_local_pool();

    while (turn()) {
    }
    if (at_exit[me]) {
        at_exit[me]->notify(at_exit[me], NULL);
        at_exit[me] = NULL;
    }
    while (own->first) {
        CoroutinePoolBatch *batch = own->first;

        QSLIST_REMOVE_HEAD(own, next);
        coroutine_pool_batch_delete(batch);
    }
    for (int i = 0; me < 3 && i < 8; i++) {
        assert(!contexts[me].timers[i]);
    }
    memset(&tls_vmtune_thread[me], 0, sizeof(tls_vmtune_thread[me])); /* another begins */
}

static int timers(void)
{
    int armed = 0;

    for (int c = 0; c < 3; c++) {
        for (int i = 0; i < 8; i++) {
            armed += contexts[c].timers[i] && contexts[c].timers[i]->at >= 0;
        }
    }
    return armed;
}

int main(void)
{
    char what[16];
    long value;

    while (scanf("%15s %ld", what, &value) == 2) {
        VmtunePool pool;

        if (!strcmp(what, "thread")) {
            me = value;
        } else if (!strcmp(what, "take")) {
            while (value--) {
                take();
            }
        } else if (!strcmp(what, "give")) {
            while (value-- && in_use) {
                give();
            }
        } else if (!strcmp(what, "pass")) {
            pass(value);
        } else if (!strcmp(what, "end")) {
            ends();
        } else if (!strcmp(what, "interrupt")) {
            interrupted = value;
        } else {
            int before = me;

            me = 0;
            if (!strcmp(what, "period")) {
                vmtune_pool_set_period(value);
            } else if (!strcmp(what, "minimum")) {
                vmtune_pool_set_minimum(value);
            } else if (!strcmp(what, "limit")) {
                vmtune_pool_set_limit(value);
            } else {
                abort();
            }
            me = before;
        }
        assert(!vmtune_lock.held && !global_pool_lock.held);
        pool = vmtune_pool_counters();
        printf("%u %u %u %zu %u %d %d\n", pool.in_use, pool.pooled, pool.peak, pool.created, there,
               in_use, timers());
    }
    return vmtune_pool_greatest_limit() ? 0 : 1;
}
