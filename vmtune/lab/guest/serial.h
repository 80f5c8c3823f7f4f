/* The first serial port, written to by polling. */
#ifndef GUEST_SERIAL_H
#define GUEST_SERIAL_H

#include <stdint.h>

void serial_init(void);
void serial_text(const char *text);
/* At most `length` characters of a text that need not end there. */
void serial_part(const char *text, uint32_t length);
void serial_number(uint64_t value);

#endif
