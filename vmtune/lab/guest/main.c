/*
 * The lab's guest: writes one byte every `stride` bytes of a region, over and
 * over, and reports each pass on the serial port.
 *
 *   start region=268435456 stride=4096 idle_ms=0 tsc_khz=2599998
 *   pass 1 us=45012
 *   pass 2 us=44873
 *
 * or, before stopping for good, one line that names what is wrong:
 *
 *   error region: does not fit into the largest free stretch of 132120576 bytes
 */
#include <stddef.h>

#include "clock.h"
#include "memory.h"
#include "ports.h"
#include "serial.h"
#include "settings.h"

static void report_start(const struct settings *settings, uint32_t ticks_per_ms)
{
    serial_text("start region=");
    serial_number(settings->region_bytes);
    serial_text(" stride=");
    serial_number(settings->stride_bytes);
    serial_text(" idle_ms=");
    serial_number(settings->idle_ms);
    serial_text(" tsc_khz=");
    serial_number(ticks_per_ms);
    serial_text("\n");
}

static void report_pass(uint64_t pass, uint64_t microseconds)
{
    serial_text("pass ");
    serial_number(pass);
    serial_text(" us=");
    serial_number(microseconds);
    serial_text("\n");
}

static void write_region(uint32_t start, const struct settings *settings, uint8_t value)
{
    volatile uint8_t *byte = (volatile uint8_t *)start;
    uint32_t writes = (settings->region_bytes - 1) / settings->stride_bytes + 1;

    for (; writes; writes--, byte += settings->stride_bytes)
        *byte = value;
}

void guest_main(const struct start_info *info)
{
    struct settings settings;
    struct settings_error error;
    struct memory_area memory;
    uint32_t ticks_per_ms;

    serial_init();
    if (info->magic != PVH_MAGIC) {
        serial_text("error start_info: is not one of the PVH boot protocol\n");
        return;
    }
    if (settings_parse(info->command_line ? (const char *)(uint32_t)info->command_line : "",
                       &settings, &error)) {
        serial_text("error ");
        serial_part(error.parameter, error.parameter_length);
        serial_text(": ");
        serial_text(error.reason);
        serial_text("\n");
        return;
    }
    memory = memory_largest(info);
    if (settings.region_bytes > memory.size) {
        serial_text("error region: does not fit into the largest free stretch of ");
        serial_number(memory.size);
        serial_text(" bytes\n");
        return;
    }
    ticks_per_ms = clock_calibrate();
    report_start(&settings, ticks_per_ms);

    for (uint64_t pass = 1;; pass++) {
        const uint64_t begin = read_tsc();
        uint64_t value = pass;

        /* 1 to 255: never the byte of a fresh page, never that of the last pass */
        write_region(memory.start, &settings, (uint8_t)(divide(&value, 255) + 1));
        report_pass(pass, clock_microseconds(read_tsc() - begin, ticks_per_ms));
        if (settings.idle_ms)
            clock_wait_ms(settings.idle_ms, ticks_per_ms);
    }
}
