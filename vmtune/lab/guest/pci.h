/* Devices on the first PCI bus, by the ports of configuration mechanism 1. Ring 0 or 3. */
#ifndef GUEST_PCI_H
#define GUEST_PCI_H

#include <stdint.h>

#define PCI_SLOTS 256                   /* devices by their functions, on one bus */

uint32_t pci_read(uint32_t slot, uint32_t offset);
void pci_write(uint32_t slot, uint32_t offset, uint32_t value);
uint8_t pci_read_byte(uint32_t slot, uint32_t offset);

/* The vendor in the lower half, the device in the upper one; 0: there is none. */
uint32_t pci_identity(uint32_t slot);
/* The offset of the capability after `after`, which is 0 for the first; 0: there is no more. */
uint32_t pci_capability(uint32_t slot, uint32_t after);
/* Where the memory of a base address register is; 0: nowhere, or beyond 4 GiB. */
uint32_t pci_memory(uint32_t slot, uint32_t bar);
/* Let the device be reached in memory and reach it, and interrupt by messages alone. */
void pci_enable(uint32_t slot);

#endif
