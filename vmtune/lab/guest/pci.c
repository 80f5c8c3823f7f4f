#include "pci.h"

#include "ports.h"

#define ADDRESS 0xcf8
#define DATA 0xcfc
#define ENABLED 0x80000000

#define IDENTITY 0x00
#define COMMAND 0x04
#define BARS 0x10
#define CAPABILITIES 0x34
#define MEMORY_MASTER_NO_PIN 0x406
#define HAS_CAPABILITIES 0x100000
#define NONE 0xffffffff
#define IO_SPACE 1
#define IS_64 4

uint32_t pci_read(uint32_t slot, uint32_t offset)
{
    port_write_long(ADDRESS, ENABLED | slot << 8 | (offset & 0xfc));
    return port_read_long(DATA);
}

void pci_write(uint32_t slot, uint32_t offset, uint32_t value)
{
    port_write_long(ADDRESS, ENABLED | slot << 8 | (offset & 0xfc));
    port_write_long(DATA, value);
}

uint8_t pci_read_byte(uint32_t slot, uint32_t offset)
{
    return (uint8_t)(pci_read(slot, offset) >> (offset & 3) * 8);
}

uint32_t pci_identity(uint32_t slot)
{
    const uint32_t identity = pci_read(slot, IDENTITY);

    return identity == NONE ? 0 : identity;
}

uint32_t pci_capability(uint32_t slot, uint32_t after)
{
    if (!after && !(pci_read(slot, COMMAND) & HAS_CAPABILITIES))
        return 0;
    return pci_read_byte(slot, after ? after + 1 : CAPABILITIES) & 0xfc;
}

uint32_t pci_memory(uint32_t slot, uint32_t bar)
{
    const uint32_t low = pci_read(slot, BARS + 4 * bar);

    if (low & IO_SPACE || (low & IS_64 && pci_read(slot, BARS + 4 * bar + 4)))
        return 0;
    return low & ~(uint32_t)0xf;
}

void pci_enable(uint32_t slot)
{
    pci_write(slot, COMMAND, (pci_read(slot, COMMAND) & 0xffff) | MEMORY_MASTER_NO_PIN);
}
