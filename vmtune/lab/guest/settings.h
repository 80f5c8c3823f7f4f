/* The guest's settings, from the kernel command line. */
#ifndef GUEST_SETTINGS_H
#define GUEST_SETTINGS_H

#include <stdint.h>

/* Sizes may end in k, M or G: powers of 1024, as on a Linux command line. */
struct settings {
    uint32_t region_bytes;      /* region=256M  how much memory to dirty */
    uint32_t stride_bytes;      /* stride=4096  from one written byte to the next */
    uint32_t idle_ms;           /* idle_ms=0    rest after each pass */
};

struct settings_error {
    const char *parameter;      /* a stretch of the command line */
    uint32_t parameter_length;
    const char *reason;
};

/* Fill in defaults and what `line` sets; 0, or -1 with *error filled in. */
int settings_parse(const char *line, struct settings *settings,
                   struct settings_error *error);

#endif
