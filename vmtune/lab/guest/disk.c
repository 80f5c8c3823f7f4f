#include "disk.h"

#include "ports.h"

#define DATA 0x1f0                      /* ports of the first channel */
#define SECTOR_COUNT 0x1f2
#define LBA_LOW 0x1f3
#define LBA_MIDDLE 0x1f4
#define LBA_HIGH 0x1f5
#define DEVICE 0x1f6
#define COMMAND 0x1f7                   /* the status, where it is read */

#define FIRST_BY_LBA 0xe0
#define READ_SECTORS 0x20
#define WRITE_SECTORS 0x30
#define BUSY 0x80
#define READY 0x40
#define FAULT 0x20
#define REQUEST 0x08
#define ERROR 0x01
#define NO_CHANNEL 0xff

/* The controller of the machine pc (82371SB): where its ports are that tell of interrupts. */
#define PCI_ADDRESS 0xcf8
#define PCI_DATA 0xcfc
#define CONTROLLER 0x80000900           /* bus 0, device 1, function 1 */
#define PCI_COMMAND 0x04
#define PCI_CLASS 0x08
#define PCI_BAR_4 0x20
#define IDE_CLASS 0x0101
#define PORTS_ON 0x05                   /* and bus master */
#define PORTS_WHERE_NONE_ARE 0xc0c0
#define PORTS_MASK 0xfff0
#define STATUS_PORT 2
#define INTERRUPTED 0x04

#define SECTOR_WORDS 256
#define SECTORS 2048

static uint32_t turns;
static uint16_t controller_status;

static uint32_t pci_read(uint32_t offset)
{
    port_write_long(PCI_ADDRESS, CONTROLLER + offset);
    return port_read_long(PCI_DATA);
}

static void pci_write(uint32_t offset, uint32_t value)
{
    port_write_long(PCI_ADDRESS, CONTROLLER + offset);
    port_write_long(PCI_DATA, value);
}

static int find_controller(void)
{
    uint32_t ports;

    if (pci_read(PCI_CLASS) >> 16 != IDE_CLASS)
        return 0;
    if (!(pci_read(PCI_BAR_4) & PORTS_MASK))
        pci_write(PCI_BAR_4, PORTS_WHERE_NONE_ARE);
    ports = pci_read(PCI_BAR_4) & PORTS_MASK;
    pci_write(PCI_COMMAND, (pci_read(PCI_COMMAND) & 0xffff) | PORTS_ON);
    controller_status = (uint16_t)(ports + STATUS_PORT);
    return 1;
}

int disk_present(void)
{
    uint8_t status;

    port_write(DEVICE, FIRST_BY_LBA);
    status = port_read(COMMAND);
    if (status == NO_CHANNEL || !(status & READY))
        return 0;
    return find_controller();
}

/* The status once the disk asks for data, or has failed. */
static uint8_t wants_data(void)
{
    uint8_t status;

    while ((status = port_read(COMMAND)) & BUSY || !(status & (REQUEST | ERROR | FAULT)))
        cpu_relax();
    return status;
}

/*
 * The status once the disk has interrupted. Not once it is no longer busy: while QEMU is about to
 * stop the VM at an I/O error, a disk is neither busy nor done.
 */
static uint8_t interrupted(void)
{
    while (!(port_read(controller_status) & INTERRUPTED))
        cpu_relax();
    return port_read(COMMAND);
}

static int failed(uint8_t status)
{
    return status & (ERROR | FAULT);
}

static void begin(uint8_t command, uint32_t sector)
{
    port_write(DEVICE, FIRST_BY_LBA);
    port_write(SECTOR_COUNT, 1);
    port_write(LBA_LOW, sector & 0xff);
    port_write(LBA_MIDDLE, sector >> 8 & 0xff);
    port_write(LBA_HIGH, sector >> 16 & 0xff);
    port_write(controller_status, INTERRUPTED);     /* once more */
    port_write(COMMAND, command);
}

/* What a turn wrote tells the turn and the place. */
static uint16_t word_of(uint32_t turn, uint32_t place)
{
    return (uint16_t)((turn * SECTOR_WORDS + place) * 0x9e3779b1 >> 16);
}

uint32_t disk_turn(void)
{
    uint16_t words[SECTOR_WORDS];
    uint32_t oldest, wrong = 0;

    for (uint32_t i = 0; i < SECTOR_WORDS; i++)
        words[i] = word_of(turns, i);
    begin(WRITE_SECTORS, turns % SECTORS);
    if (failed(wants_data()))
        return SECTOR_WORDS;
    port_write_words(DATA, words, SECTOR_WORDS);
    if (failed(interrupted()))
        return SECTOR_WORDS;
    turns++;
    oldest = turns < SECTORS ? 0 : turns - SECTORS;
    begin(READ_SECTORS, oldest % SECTORS);
    if (failed(interrupted()))
        return SECTOR_WORDS;
    port_read_words(DATA, words, SECTOR_WORDS);
    for (uint32_t i = 0; i < SECTOR_WORDS; i++)
        wrong += words[i] != word_of(oldest, i);
    return wrong;
}
