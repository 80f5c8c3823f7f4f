#include "remap.h"

#include "pci.h"

#define BUSES 17                        /* the root bus, and one behind each bridge of a boot */
#define FUNCTIONS_OF_DEVICE 8
#define COMMAND 0x04
#define MEMORY_ON 0x02
#define SHARED_MEMORY 0x11101af4u       /* device and vendor of ivshmem */
#define MOST_DEVICES 256

static uint32_t devices[MOST_DEVICES];

static uint32_t find_devices(void)
{
    uint32_t found = 0;

    for (uint32_t slot = 0; slot < BUSES * PCI_SLOTS; slot += FUNCTIONS_OF_DEVICE) {
        if (pci_identity(slot) == SHARED_MEMORY && found < MOST_DEVICES)
            devices[found++] = slot;
    }
    return found;
}

int remap_devices(uint32_t count)
{
    const uint32_t found = count ? find_devices() : 0;

    if (count && !found)
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t device = devices[i % found];
        /* The status in the upper half is cleared by writing ones: zeros leave it. */
        const uint32_t command = pci_read(device, COMMAND) & 0xffff;

        pci_write(device, COMMAND, command & ~(uint32_t)MEMORY_ON);
        pci_write(device, COMMAND, command | MEMORY_ON);
    }
    return 0;
}
