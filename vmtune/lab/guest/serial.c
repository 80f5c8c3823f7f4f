#include "serial.h"

#include "ports.h"

#define PORT 0x3f8
#define LINE_CONTROL (PORT + 3)
#define LINE_STATUS (PORT + 5)
#define TRANSMITTER_EMPTY 0x20

void serial_init(void)
{
    port_write(PORT + 1, 0x00);         /* no interrupts */
    port_write(LINE_CONTROL, 0x80);     /* the divisor: 115200 baud */
    port_write(PORT, 0x01);
    port_write(PORT + 1, 0x00);
    port_write(LINE_CONTROL, 0x03);     /* 8 bits, no parity, one stop bit */
    port_write(PORT + 2, 0x07);         /* FIFOs on and emptied */
}

static void put(char c)
{
    while (!(port_read(LINE_STATUS) & TRANSMITTER_EMPTY))
        ;
    port_write(PORT, (uint8_t)c);
}

void serial_text(const char *text)
{
    while (*text)
        put(*text++);
}

void serial_part(const char *text, uint32_t length)
{
    while (length-- && *text)
        put(*text++);
}

void serial_number(uint64_t value)
{
    char digits[20];
    uint32_t used = 0;

    do {
        digits[used++] = (char)('0' + divide(&value, 10));
    } while (value);
    while (used)
        put(digits[--used]);
}
