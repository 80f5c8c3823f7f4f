"""How fast disks are copied, and when the copies will have caught up with the guest. Pure.

QEMU counts what was copied and what has to be, which grows with what the guest writes meanwhile
(``mirror_run`` of block/mirror.c): the difference of two looks tells both rates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from vmtune.model.migration.disks import CopiedDisk, Mirrored
from vmtune.model.migration.record import Migration, MigrationState

WINDOW_MS = 30_000
"""Rates are those of the last so many milliseconds: QEMU copies in bursts of up to 16 MiB, between
which a copy at 1 MiB/s was seen to stand for 16 s."""
_SETTLED_MS = 2_000
"""In less no rate is told."""
STANDS = 0.97
"""A copy of which more than this share of what was left is still left after a window does not
catch up."""


class MigrationPhase(StrEnum):
    """What of a VM is sent right now."""

    DISKS = "disks"
    """Its local disks; its memory follows once all of them have caught up with the guest."""
    MEMORY = "memory"


def phase_of(record: Migration) -> MigrationPhase | None:
    """What is sent; None where nothing is."""
    if record.state in (MigrationState.ACTIVE, MigrationState.POSTCOPY_PAUSED):
        return MigrationPhase.MEMORY
    if record.state is not MigrationState.STARTING or not record.disks:
        return None
    ready = all(disk.ready_ms is not None for disk in record.disks)
    return MigrationPhase.MEMORY if ready else MigrationPhase.DISKS


@dataclass(frozen=True, slots=True)
class Look:
    """What QEMU said of the copies at a moment, by the disks' targets."""

    at_ms: int
    seen: Mapping[str, Mirrored]


def remembered(before: tuple[Look, ...], now: Look) -> tuple[Look, ...]:
    """The looks of the last window, and the newest one before."""
    looks = (*before, now)
    oldest = now.at_ms - WINDOW_MS
    first = max((n for n, look in enumerate(looks) if look.at_ms <= oldest), default=0)
    return looks[first:]


def paced(disks: tuple[CopiedDisk, ...], looks: tuple[Look, ...]) -> tuple[CopiedDisk, ...]:
    """*disks* with their rates and what is left of their time."""
    return tuple(_paced(disk, looks) for disk in disks)


def _paced(disk: CopiedDisk, looks: tuple[Look, ...]) -> CopiedDisk:
    # Before anything is copied QEMU looks for what there is to copy, and the total jumps.
    said = [
        (look.at_ms, look.seen[disk.target])
        for look in looks
        if disk.target in look.seen and look.seen[disk.target].copied_bytes > 0
    ]
    still = replace(disk, left_ms=None, converges=None)
    if len(said) < 2:
        return still
    (then_ms, then), (now_ms, now) = said[0], said[-1]
    took_ms = now_ms - then_ms
    if took_ms < _SETTLED_MS:
        return still
    copied = max(0, now.copied_bytes - then.copied_bytes)
    written = max(0, now.total_bytes - then.total_bytes)
    pace = replace(
        still,
        bytes_per_s=round(copied / took_ms * 1000),
        written_bytes_per_s=round(written / took_ms * 1000),
    )
    if disk.ready_ms is not None:
        return pace
    left, was_left = now.left_bytes, then.left_bytes
    if took_ms >= WINDOW_MS and left >= STANDS * was_left:
        return replace(pace, converges=False)
    if left >= was_left:
        return pace
    return replace(pace, left_ms=round(left * took_ms / (was_left - left)), converges=True)


@dataclass(frozen=True, slots=True)
class DiskSample:
    """How far the copy of a disk was at a moment; the figures are those of :class:`CopiedDisk`.

    :param at_ms: since the migration's start.
    :param target: the disk's name in the configuration.
    """

    at_ms: int
    target: str
    copied_bytes: int
    total_bytes: int
    bytes_per_s: int
    written_bytes_per_s: int


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """The copies of all disks together.

    :param at_ms: since the migration's start.
    """

    disks: tuple[CopiedDisk, ...]
    at_ms: int

    @property
    def copied_bytes(self) -> int:
        """Of all disks."""
        return sum(disk.copied_bytes for disk in self.disks)

    @property
    def total_bytes(self) -> int:
        """Of all disks."""
        return sum(disk.total_bytes for disk in self.disks)

    @property
    def samples(self) -> tuple[DiskSample, ...]:
        """One of each disk."""
        return tuple(
            DiskSample(
                self.at_ms,
                disk.target,
                disk.copied_bytes,
                disk.total_bytes,
                disk.bytes_per_s,
                disk.written_bytes_per_s,
            )
            for disk in self.disks
        )

    @property
    def ready(self) -> bool:
        """Whether all have caught up."""
        return all(disk.ready_ms is not None for disk in self.disks)

    @property
    def left_ms(self) -> int | None:
        """Until the last one has caught up: they are copied at the same time."""
        waiting = [disk.left_ms for disk in self.disks if disk.ready_ms is None]
        known = [left for left in waiting if left is not None]
        return max(known) if known and len(known) == len(waiting) else None

    def share(self, memory_bytes: int | None) -> float:
        """Of the bytes of disks and memory, 0 to 0.99.

        :param memory_bytes: what is sent after the disks; None where it is not known.
        """
        whole = self.total_bytes + (memory_bytes or 0)
        return min(0.99, self.copied_bytes / whole) if whole else 0.0


def behind(disks: Iterable[CopiedDisk]) -> tuple[CopiedDisk, ...]:
    """Those that do not catch up with what the guest writes."""
    return tuple(disk for disk in disks if disk.converges is False and disk.ready_ms is None)
