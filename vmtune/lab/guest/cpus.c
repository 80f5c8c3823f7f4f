#include "cpus.h"

#include "apic.h"
#include "clock.h"
#include "ports.h"

#define FW_CFG_SELECTOR 0x510
#define FW_CFG_DATA 0x511
#define FW_CFG_SIGNATURE 0x00
#define FW_CFG_NB_CPUS 0x05

#define APIC_ENABLED 0x1ff
#define COMMAND_PENDING 0x1000
#define TO_ALL_OTHERS 0xc0000
#define LEVEL_ASSERT 0x4000
#define INIT 0x500
#define STARTUP 0x600

/* Conventional memory that no firmware has anything in, and which is no part of the region. */
#define TRAMPOLINE 0x8000
#define PATIENCE_MS 30000

extern char trampoline[], trampoline_end[];
extern volatile uint32_t arrived;       /* counts the caller */

static volatile uint32_t identified;
static volatile uint32_t numbered;
static uint8_t apic_ids[MOST_CPUS];
static void (*work_of_all)(uint32_t number);

static uint8_t fw_cfg_byte(void)
{
    return port_read(FW_CFG_DATA);
}

uint32_t cpus_present(void)
{
    const char *signature = "QEMU";
    uint32_t count;

    port_write_word(FW_CFG_SELECTOR, FW_CFG_SIGNATURE);
    for (; *signature; signature++)
        if (fw_cfg_byte() != (uint8_t)*signature)
            return 1;
    port_write_word(FW_CFG_SELECTOR, FW_CFG_NB_CPUS);
    count = fw_cfg_byte();
    count |= (uint32_t)fw_cfg_byte() << 8;
    return count;
}

uint8_t cpus_apic_id(void)
{
    uint32_t leaf = 1, ebx, ecx = 0, edx;

    __asm__ volatile("cpuid" : "+a"(leaf), "=b"(ebx), "+c"(ecx), "=d"(edx));
    return (uint8_t)(ebx >> 24);
}

static void command_others(uint32_t command)
{
    *apic(APIC_COMMAND_LOW) = TO_ALL_OTHERS | LEVEL_ASSERT | command;
    while (*apic(APIC_COMMAND_LOW) & COMMAND_PENDING)
        cpu_relax();
}

/* Called by start.S on all processors but the first. */
void other_cpu_main(uint32_t place)
{
    uint32_t number = 0;
    uint32_t count;

    apic_ids[place] = cpus_apic_id();
    __atomic_add_fetch(&identified, 1, __ATOMIC_SEQ_CST);
    while (!numbered)
        cpu_relax();
    count = numbered;
    if (place >= count)
        return;                         /* it came too late, or there are more than QEMU said */
    for (uint32_t i = 0; i < count; i++)
        number += apic_ids[i] < apic_ids[place];
    work_of_all(number);
}

uint32_t cpus_start(uint32_t count, uint32_t ticks_per_ms, void (*work)(uint32_t number))
{
    char *to = (char *)TRAMPOLINE;

    if (count == 1)
        return 1;
    for (const char *from = trampoline; from < trampoline_end; from++)
        *to++ = *from;
    work_of_all = work;
    apic_ids[0] = cpus_apic_id();
    *apic(APIC_SPURIOUS) = APIC_ENABLED;
    command_others(INIT);
    clock_wait_us(10000, ticks_per_ms);
    command_others(STARTUP | TRAMPOLINE >> 12);
    clock_wait_us(200, ticks_per_ms);
    command_others(STARTUP | TRAMPOLINE >> 12);
    for (uint32_t waited = 0; identified + 1 < count && waited < PATIENCE_MS; waited++)
        clock_wait_us(1000, ticks_per_ms);
    if (identified + 1 >= count)
        numbered = count;
    return identified + 1;
}
