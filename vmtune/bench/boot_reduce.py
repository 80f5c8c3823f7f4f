"""The metrics of one boot, computed from its record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vmtune.domain.boot_record import BootEnd, BootMarkName, BootRecord
from vmtune.domain.metrics_boot import BOOT_METRICS


def reduce_boot(record: BootRecord) -> Mapping[str, float]:
    """Every metric that can be had, by name, in the table's order: see
    :mod:`vmtune.domain.metrics_boot` for what each means."""
    found = {
        name: value
        for part in (_times(record), _ends(record), _updates(record))
        for name, value in part
    }
    return {metric.name: found[metric.name] for metric in BOOT_METRICS if metric.name in found}


def _times(record: BootRecord) -> Iterator[tuple[str, float]]:
    names = (BootMarkName.GUEST, BootMarkName.KERNEL, BootMarkName.USER_SPACE)
    guest, kernel, user = (
        None if mark is None else mark.at_ms for mark in map(record.mark, names)
    )  # fmt: skip
    if guest is not None:
        yield "boot_to_guest_ms", guest
    if kernel is not None:
        yield "boot_to_kernel_ms", kernel
        if guest is not None:
            yield "boot_firmware_ms", kernel - guest
    if user is not None:
        yield "boot_to_userspace_ms", user
        if kernel is not None:
            yield "boot_kernel_ms", user - kernel


def _ends(record: BootRecord) -> Iterator[tuple[str, float]]:
    yield "boot_elapsed_ms", record.ended_ms
    if record.cpu_ms is not None:
        yield "boot_cpu_ms", record.cpu_ms
    if record.end is not BootEnd.DIED:
        yield "booted", float(record.end is BootEnd.USER_SPACE)


def _updates(record: BootRecord) -> Iterator[tuple[str, float]]:
    if record.region_updates is None:
        return
    total = sum(record.region_updates.values())
    yield "memory_region_updates", float(total)
    guest = record.mark(BootMarkName.GUEST)
    if guest is not None and guest.region_updates is not None:
        yield "memory_region_updates_by_guest", float(total - guest.region_updates)
