#include "clock.h"

#include "ports.h"

#define PIT_HZ 1193182
#define PIT_CHANNEL_2 0x42
#define PIT_COMMAND 0x43
#define SPEAKER_PORT 0x61
#define GATE_2 0x01
#define OUTPUT_2 0x20

#define ROUND_MS 20
#define MOST_ROUNDS 10
/* Two rounds that differ by less than this part of them were both not held up. */
#define AGREEMENT 1024

/* The counter's ticks while channel 2 of the timer counts down ROUND_MS. */
static uint32_t one_round(void)
{
    const uint16_t count = PIT_HZ / 1000 * ROUND_MS;
    uint64_t begin;

    port_write(SPEAKER_PORT, (port_read(SPEAKER_PORT) & 0xfc) | GATE_2);
    port_write(PIT_COMMAND, 0xb0);      /* channel 2, both bytes, mode 0 */
    port_write(PIT_CHANNEL_2, count & 0xff);
    port_write(PIT_CHANNEL_2, count >> 8);
    begin = read_tsc();
    while (!(port_read(SPEAKER_PORT) & OUTPUT_2))
        ;
    return (uint32_t)(read_tsc() - begin);
}

uint32_t clock_calibrate(void)
{
    /* A round is only ever seen to end late, so the shortest is the truest. */
    uint32_t shortest = one_round();

    for (int i = 1; i < MOST_ROUNDS; i++) {
        const uint32_t ticks = one_round();
        const uint32_t longer = ticks > shortest ? ticks : shortest;

        if (ticks < shortest)
            shortest = ticks;
        if (longer - shortest < shortest / AGREEMENT)
            break;
    }
    shortest /= ROUND_MS;
    return shortest ? shortest : 1;
}

uint64_t clock_microseconds(uint64_t ticks, uint32_t ticks_per_ms)
{
    return ticks / ticks_per_ms * 1000 + ticks % ticks_per_ms * 1000 / ticks_per_ms;
}

uint64_t clock_between(uint64_t begin, uint64_t end)
{
    return (int64_t)(end - begin) > 0 ? end - begin : 0;
}

void clock_wait_us(uint32_t us, uint32_t ticks_per_ms)
{
    const uint64_t begin = read_tsc();
    const uint64_t ticks = (uint64_t)us * ticks_per_ms / 1000;

    while (read_tsc() - begin < ticks)
        cpu_relax();
}
