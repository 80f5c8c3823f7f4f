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

/* The transmitter's buffer holds this much once it is empty. */
#define FIFO 16

void serial_send(const char *bytes, uint32_t count)
{
    while (count) {
        const uint32_t part = count < FIFO ? count : FIFO;

        while (!(port_read(LINE_STATUS) & TRANSMITTER_EMPTY))
            cpu_relax();
        port_write_bytes(PORT, bytes, part);
        bytes += part;
        count -= part;
    }
}
