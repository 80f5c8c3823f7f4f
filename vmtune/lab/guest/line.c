#include "line.h"

#include "ports.h"
#include "serial.h"

static uint32_t sending;

void line_part(struct line *line, const char *text, uint32_t length)
{
    /* One place is kept for the line end. */
    while (length-- && *text && line->length < sizeof line->text - 1)
        line->text[line->length++] = *text++;
}

void line_text(struct line *line, const char *text)
{
    line_part(line, text, UINT32_MAX);
}

void line_number(struct line *line, uint64_t value)
{
    char digits[20];
    uint32_t first = sizeof digits;

    do {
        digits[--first] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    line_part(line, digits + first, sizeof digits - first);
}

void line_field(struct line *line, const char *name, uint64_t value)
{
    line_text(line, " ");
    line_text(line, name);
    line_text(line, "=");
    line_number(line, value);
}

int line_try_send(struct line *line)
{
    if (__atomic_exchange_n(&sending, 1, __ATOMIC_ACQUIRE))
        return 0;
    line->text[line->length++] = '\n';
    serial_send(line->text, line->length);
    __atomic_store_n(&sending, 0, __ATOMIC_RELEASE);
    line->length = 0;
    return 1;
}

void line_send(struct line *line)
{
    while (!line_try_send(line))
        cpu_relax();
}
