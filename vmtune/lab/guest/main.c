/*
 * The lab's guest: writes over a region of memory, over and over, and reports on the serial port.
 * On each processor a worker has a part of its own. The first line says that it runs:
 *
 *   guest
 *
 * The second says what it does, once the region's content is laid out (see content.h). It is one
 * line, with the settings, then how many workers there are, where the region begins, and the
 * clock's ticks per millisecond:
 *
 *   start region=268435456 stride=4096 idle_ms=0 dirty_mb=0 zero=0 random=0 beat_ms=0 check=0
 *   ring=0 skew=0 workers=2 address=2134016 tsc_khz=2599998
 *
 * and then there is a line for each pass of a worker over its part: the worker, the number of
 * the pass, when it ended since the start, and how long it took, with waiting for its turn at a
 * limited dirty rate, without the rest that follows:
 *
 *   pass 0 1 end_us=45013 us=45012
 *   pass 1 1 end_us=45170 us=45168
 *
 * Where passes are shorter than the time between two reports, 20 ms for each worker there is, or
 * another worker is just writing a line, one line stands for several: the last one's number and
 * end, how long all of them took, how many they are and how long the longest took:
 *
 *   pass 0 19 end_us=91204 us=39870 passes=18 longest_us=2391
 *
 * With check=1 the line ends with how many words this worker has ever found to be other than what
 * it had written there in the pass before:
 *
 *   pass 0 3 end_us=135210 us=45012 wrong=0
 *
 * A VM with an IDE disk then also writes to it, and reads it back, while it rests: words of that
 * which are wrong count as well.
 *
 * or, before stopping for good, one line that names what is wrong:
 *
 *   error region: does not fit into the largest free stretch of 132120576 bytes
 *
 * With io_depth it loads virtio-blk disks instead: see io.h.
 */
#include "clock.h"
#include "cpus.h"
#include "fault.h"
#include "io.h"
#include "line.h"
#include "memory.h"
#include "remap.h"
#include "serial.h"
#include "settings.h"
#include "worker.h"

/* All of these: 0, or -1 after the line that says what is wrong. */
static int read_settings(const struct start_info *info)
{
    struct settings_error error;

    if (!settings_parse(info->command_line ? (const char *)info->command_line : "",
                        &job.settings, &error))
        return 0;
    return fault_text(error.parameter, error.parameter_length, error.reason);
}

static int find_memory(const struct memory_area memory)
{
    const struct settings *settings = &job.settings;

    if (settings->region_bytes > memory.size)
        return fault("region", "does not fit into the largest free stretch of ", memory.size,
                      " bytes");
    job.content = (struct content){
        .region = memory.start,
        .stride = settings->stride_bytes,
        .zero_percent = settings->zero_percent,
        .random_percent = settings->random_percent,
        .check = settings->check,
    };
    return 0;
}

static int start_all(void (*work)(uint32_t number))
{
    const uint32_t answered = cpus_start(job.workers, job.ticks_per_ms, work);

    if (answered < job.workers)
        return fault("vcpus", "only ", answered, " have started");
    work(0);
    return 0;
}

static int start_workers(const struct start_info *info)
{
    if (find_memory(memory_for(info, job.settings.region_bytes)))
        return -1;
    if (job.settings.region_bytes <= (uint64_t)(job.workers - 1) * PAGE)
        return fault("region", "has no page for each of ", job.workers, " vCPUs");
    return start_all(worker_run);
}

static int start_io(const struct start_info *info)
{
    return io_set_up(memory_largest(info)) ? -1 : start_all(io_run);
}

static int start(const struct start_info *info)
{
    job.workers = cpus_present();
    if (job.workers > MOST_CPUS)
        return fault("vcpus", "are more than ", MOST_CPUS, "");
    job.ticks_per_ms = clock_calibrate();
    if (remap_devices(job.settings.remaps))
        return fault("remaps", "are ", job.settings.remaps, ", and no device has memory to map");
    return job.settings.io_depth ? start_io(info) : start_workers(info);
}

static void say_hello(void)
{
    struct line line;

    line.length = 0;
    line_text(&line, "guest");
    line_send(&line);
}

void guest_main(const struct start_info *info)
{
    serial_init();
    say_hello();
    if (info->magic != PVH_MAGIC)
        fault("start_info", "is not of the PVH boot protocol but begins with ", info->magic, "");
    else if (!read_settings(info))
        start(info);
}
