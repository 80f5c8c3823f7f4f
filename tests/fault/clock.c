/* A wall clock that is set back, for the process that this is preloaded into: CLOCK_REALTIME plus
 * the seconds in the file that VMTUNE_TEST_CLOCK names, which may change while it runs. The clocks
 * that are never set (monotonic, boot time) stay as they are, as where an operator sets the time.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static const volatile long *offset;

__attribute__((constructor)) static void open_offset(void)
{
    const char *path = getenv("VMTUNE_TEST_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);

    if (page != MAP_FAILED)
        offset = page;
}

int clock_gettime(clockid_t which, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    int failed;

    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    failed = real(which, now);
    if (!failed && offset && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
        now->tv_sec += *offset;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec at;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &at);
    now->tv_sec = at.tv_sec;
    now->tv_usec = at.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *into)
{
    struct timespec at;

    clock_gettime(CLOCK_REALTIME, &at);
    if (into)
        *into = at.tv_sec;
    return at.tv_sec;
}
