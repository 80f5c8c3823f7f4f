"""The metrics of one boot, computed from its record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vmtune.bench.model.metrics.boot import BOOT_METRICS
from vmtune.bench.model.runs.boot_record import BootEnd, BootMarkName, BootRecord


def reduce_boot(record: BootRecord) -> Mapping[str, float]:
    """Every metric that can be had, by name, in the table's order: see
    :mod:`vmtune.bench.model.metrics.boot` for what each means."""
    found = {
        name: value
        for part in (_times(record), _ends(record), _updates(record))
        for name, value in part
    }
    return {metric.name: found[metric.name] for metric in BOOT_METRICS if metric.name in found}


_SPANS = (
    ("boot_to_guest_ms", None, BootMarkName.GUEST),
    ("boot_to_kernel_ms", None, BootMarkName.KERNEL),
    ("boot_to_userspace_ms", None, BootMarkName.USER_SPACE),
    ("boot_firmware_ms", BootMarkName.GUEST, BootMarkName.LOADING),
    ("boot_loading_ms", BootMarkName.LOADING, BootMarkName.KERNEL),
    ("boot_kernel_ms", BootMarkName.KERNEL, BootMarkName.USER_SPACE),
)
"""Of each span its begin, the process's start where that is None, and its end."""


def _times(record: BootRecord) -> Iterator[tuple[str, float]]:
    at_ms = {mark.name: mark.at_ms for mark in record.marks}
    for name, begin, end in _SPANS:
        if end in at_ms and (begin is None or begin in at_ms):
            yield name, at_ms[end] - (0 if begin is None else at_ms[begin])


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
