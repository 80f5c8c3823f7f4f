/* A line of the report, put together before it is sent. */
#ifndef GUEST_LINE_H
#define GUEST_LINE_H

#include <stdint.h>

struct line {
    uint32_t length;            /* set to 0 before the first text */
    char text[248];             /* what does not fit is cut off */
};

void line_text(struct line *line, const char *text);
/* At most `length` characters of a text that need not end there. */
void line_part(struct line *line, const char *text, uint32_t length);
void line_number(struct line *line, uint64_t value);
/* ` name=value` */
void line_field(struct line *line, const char *name, uint64_t value);

/* Send the line, with its line end, and empty it; wait until no other vCPU is sending. */
void line_send(struct line *line);
/* The same, but leave it as it is and return 0 if another is sending. */
int line_try_send(struct line *line);

#endif
