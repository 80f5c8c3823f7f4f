#include "fault.h"

#include "line.h"

static void begin(struct line *line, const char *parameter, uint32_t length)
{
    line->length = 0;
    line_text(line, "error ");
    line_part(line, parameter, length);
    line_text(line, ": ");
}

int fault(const char *parameter, const char *before, uint64_t number, const char *after)
{
    struct line line;

    begin(&line, parameter, UINT32_MAX);
    line_text(&line, before);
    line_number(&line, number);
    line_text(&line, after);
    line_send(&line);
    return -1;
}

int fault_text(const char *parameter, uint32_t length, const char *reason)
{
    struct line line;

    begin(&line, parameter, length);
    line_text(&line, reason);
    line_send(&line);
    return -1;
}
