/* What is wrong, in one line on the serial port, before the guest stops for good. */
#ifndef GUEST_FAULT_H
#define GUEST_FAULT_H

#include <stdint.h>

/* `error PARAMETER: BEFORE NUMBER AFTER`; returns -1. */
int fault(const char *parameter, const char *before, uint64_t number, const char *after);
/* `error PARAMETER: REASON`, of which the parameter has `length` characters at most; returns -1. */
int fault_text(const char *parameter, uint32_t length, const char *reason);

#endif
