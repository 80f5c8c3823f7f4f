"""Samples as a real migration of a busy guest gives them: growing, jumping, at rest."""

from __future__ import annotations

import random

from vmtune.model.migration.record import QemuStatus, Sample

_PAGE_BYTES = 4096


def make_samples(number: int, seed: int = 1) -> list[Sample]:
    """*number* samples at 10 Hz, always the same for one *seed*."""
    chance = random.Random(seed)
    samples: list[Sample] = []
    at_ms = transferred = iteration = normal = zero = 0
    total = 4 << 30
    remaining = total
    for n in range(number):
        boundary = n % 17 == 0
        at_ms += chance.randint(98, 104) if not boundary else chance.randint(3, 90)
        iteration += boundary
        sent = chance.randint(90_000_000, 130_000_000)
        transferred += sent
        normal += sent // _PAGE_BYTES
        zero += chance.randint(0, 4000)
        remaining = chance.randint(1 << 26, 1 << 30) if boundary else max(0, remaining - sent)
        samples.append(
            Sample(
                at_ms=at_ms,
                status=QemuStatus.ACTIVE if n < number - 1 else QemuStatus.COMPLETED,
                iteration=iteration,
                boundary=boundary,
                transferred_bytes=transferred,
                remaining_bytes=remaining,
                total_bytes=total,
                zero_pages=zero,
                normal_pages=normal,
                page_size_bytes=_PAGE_BYTES,
                dirty_pages_per_s=chance.randint(10_000, 40_000)
                if boundary
                else (samples[-1].dirty_pages_per_s if samples else 0),
                throughput_bytes_per_s=sent * 10,
                multifd_bytes=transferred - chance.randint(1000, 2000),
                postcopy_bytes=0,
                expected_downtime_ms=None if n < 10 else chance.randint(250, 900),
                throttle_percent=min(99, 20 + iteration // 4 * 10),
                missed_zero_copy=0,
                dirty_limit_throttle_us=0,
                dirty_limit_ring_full_us=0,
            )
        )
    return samples
