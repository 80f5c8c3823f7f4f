/* Memory of devices that comes and goes, as while firmware sets devices up. */
#ifndef GUEST_REMAP_H
#define GUEST_REMAP_H

#include <stdint.h>

/*
 * Take the memory of the ivshmem devices out of the address space and put it back, `count` times in
 * all, one device after the other: two updates of the memory map each. 0, or -1 where there is none.
 */
int remap_devices(uint32_t count);

#endif
