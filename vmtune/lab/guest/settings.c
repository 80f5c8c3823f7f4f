#include "settings.h"

#include <stddef.h>

#define MIB (1024 * 1024)
#define REGION_BITS 38
#define MOST_DIRTY_MB 1000000
#define MOST_DEPTH 1024
#define MOST_JOBS 256
#define MOST_IO_MS 3600000

static int is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int same(const char *text, uint32_t length, const char *name)
{
    while (length && *name && *text == *name) {
        text++;
        name++;
        length--;
    }
    return !length && !*name;
}

/* How many bits a suffix shifts by; -1 for no known suffix. */
static int suffix_shift(char c)
{
    switch (c) {
    case 'k': case 'K': return 10;
    case 'm': case 'M': return 20;
    case 'g': case 'G': return 30;
    default: return -1;
    }
}

/* Digits of a number below 2^bits, and a suffix where one is allowed; NULL or the reason of refusal. */
static const char *parse_number(const char *text, uint32_t length, int suffix, int bits,
                                uint64_t *result)
{
    const char *too_large = bits > 32 ? "is 256 GiB or more" : "is 4 GiB or more";
    const uint64_t most = ((uint64_t)1 << bits) - 1;
    uint64_t value = 0;
    int shift = length ? suffix_shift(text[length - 1]) : -1;

    if (suffix && shift >= 0)
        length--;
    else
        shift = 0;
    if (!length)
        return "has no number";
    for (; length; text++, length--) {
        uint32_t digit = (uint32_t)(*text - '0');

        if (digit > 9)
            return suffix ? "is no number with a suffix k, M or G"
                          : "is no whole number";
        if (value > (most - digit) / 10)
            return too_large;
        value = value * 10 + digit;
    }
    if (value > most >> shift)
        return too_large;
    *result = value << shift;
    return NULL;
}

static const struct parameter {
    const char *name;
    uint32_t offset;
    int is_size;
} parameters[] = {
    {"stride", offsetof(struct settings, stride_bytes), 1},
    {"idle_ms", offsetof(struct settings, idle_ms), 0},
    {"dirty_mb", offsetof(struct settings, dirty_mb), 0},
    {"zero", offsetof(struct settings, zero_percent), 0},
    {"random", offsetof(struct settings, random_percent), 0},
    {"beat_ms", offsetof(struct settings, beat_ms), 0},
    {"check", offsetof(struct settings, check), 0},
    {"ring", offsetof(struct settings, ring), 0},
    {"skew", offsetof(struct settings, skew_percent), 0},
    {"io_depth", offsetof(struct settings, io_depth), 0},
    {"io_jobs", offsetof(struct settings, io_jobs), 0},
    {"io_block", offsetof(struct settings, io_block_bytes), 1},
    {"io_write", offsetof(struct settings, io_write_percent), 0},
    {"io_sequential", offsetof(struct settings, io_sequential), 0},
    {"io_ramp_ms", offsetof(struct settings, io_ramp_ms), 0},
    {"io_ms", offsetof(struct settings, io_ms), 0},
    {"io_wait", offsetof(struct settings, io_wait), 0},
    {"io_check", offsetof(struct settings, io_check), 0},
    {"remaps", offsetof(struct settings, remaps), 0},
};

static const char *parse_parameter(const char *name, uint32_t name_length,
                                   const char *value, uint32_t value_length,
                                   struct settings *settings)
{
    uint64_t number = 0;
    const char *reason;

    if (same(name, name_length, "region"))
        return parse_number(value, value_length, 1, REGION_BITS, &settings->region_bytes);
    for (uint32_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        const struct parameter *p = &parameters[i];

        if (!same(name, name_length, p->name))
            continue;
        reason = parse_number(value, value_length, p->is_size, 32, &number);
        if (!reason)
            *(uint32_t *)((char *)settings + p->offset) = (uint32_t)number;
        return reason;
    }
    return "is not known";
}

static int refuse(struct settings_error *error, const char *parameter,
                  uint32_t length, const char *reason)
{
    error->parameter = parameter;
    error->parameter_length = length;
    error->reason = reason;
    return -1;
}

/* What is wrong with the load of disks; 0 or -1. */
static int check_io(const struct settings *settings, struct settings_error *error)
{
    if (settings->io_depth > MOST_DEPTH)
        return refuse(error, "io_depth", 8, "is more than 1024");
    if (!settings->io_jobs || settings->io_jobs > MOST_JOBS)
        return refuse(error, "io_jobs", 7, "is not from 1 to 256");
    if (!settings->io_block_bytes || settings->io_block_bytes % 512 ||
        settings->io_block_bytes > 32 * MIB)
        return refuse(error, "io_block", 8, "is no multiple of 512 up to 32M");
    if (settings->io_write_percent > 100)
        return refuse(error, "io_write", 8, "is more than 100");
    if (settings->io_sequential > 1)
        return refuse(error, "io_sequential", 13, "is neither 0 nor 1");
    if (!settings->io_ms || settings->io_ms > MOST_IO_MS)
        return refuse(error, "io_ms", 5, "is not from 1 to 3600000");
    if (settings->io_ramp_ms > MOST_IO_MS)
        return refuse(error, "io_ramp_ms", 10, "is more than 3600000");
    if (settings->io_wait > 1)
        return refuse(error, "io_wait", 7, "is neither 0 nor 1");
    if (settings->io_check > 1)
        return refuse(error, "io_check", 8, "is neither 0 nor 1");
    return 0;
}

int settings_parse(const char *line, struct settings *settings,
                   struct settings_error *error)
{
    *settings = (struct settings){
        .region_bytes = 256 * MIB,
        .stride_bytes = 4096,
        .io_jobs = 1,
        .io_block_bytes = 4096,
        .io_ms = 1000,
    };

    for (;;) {
        const char *name, *reason;
        uint32_t length = 0, name_length = 0;

        while (is_space(*line))
            line++;
        if (!*line)
            break;
        name = line;
        for (; *line && !is_space(*line); line++)
            length++;
        while (name_length < length && name[name_length] != '=')
            name_length++;
        if (name_length == length)
            return refuse(error, name, length, "has no value");
        reason = parse_parameter(name, name_length, name + name_length + 1,
                                 length - name_length - 1, settings);
        if (reason)
            return refuse(error, name, name_length, reason);
    }
    if (!settings->stride_bytes)
        return refuse(error, "stride", 6, "is 0");
    if (!settings->region_bytes)
        return refuse(error, "region", 6, "is 0");
    if (settings->region_bytes < settings->stride_bytes)
        return refuse(error, "region", 6, "is less than stride");
    if (settings->dirty_mb > MOST_DIRTY_MB)
        return refuse(error, "dirty_mb", 8, "is more than 1000000");
    if (settings->zero_percent > 100)
        return refuse(error, "zero", 4, "is more than 100");
    if (settings->random_percent > 100 - settings->zero_percent)
        return refuse(error, "random", 6, "is more than zero leaves of 100");
    if (settings->check > 1)
        return refuse(error, "check", 5, "is neither 0 nor 1");
    if (settings->check && (settings->stride_bytes % 8 || settings->region_bytes % 8))
        return refuse(error, "check", 5, "needs a stride and a region in multiples of 8");
    if (settings->check && (settings->zero_percent || settings->random_percent))
        return refuse(error, "check", 5, "does not go with zero or random");
    if (settings->ring != 0 && settings->ring != 3)
        return refuse(error, "ring", 4, "is neither 0 nor 3");
    if (settings->skew_percent && (settings->skew_percent < 50 || settings->skew_percent > 99))
        return refuse(error, "skew", 4, "is neither 0 nor 50 to 99");
    if (settings->skew_percent && 4096 % settings->stride_bytes)
        return refuse(error, "skew", 4, "needs a stride that divides 4096");
    if (settings->skew_percent && settings->check)
        return refuse(error, "skew", 4, "does not go with check");
    return check_io(settings, error);
}
