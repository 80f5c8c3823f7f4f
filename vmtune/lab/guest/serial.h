/* The first serial port, written to by polling. */
#ifndef GUEST_SERIAL_H
#define GUEST_SERIAL_H

#include <stdint.h>

void serial_init(void);
void serial_send(const char *bytes, uint32_t count);

#endif
