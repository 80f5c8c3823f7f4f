"""How long the copy of local disks takes before the memory is sent.

The disks are copied at the same time, each at the migration's bandwidth limit at most. How fast the
hosts' storage reads and writes is known by earlier copies between them alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from vmtune.forecast.path import Throughput
from vmtune.forecast.prospect import Prospect
from vmtune.forecast.ranges import Range
from vmtune.model.host.disks import Disk
from vmtune.model.migration.record import Migration, MigrationState
from vmtune.model.tunables.rows.storage import COPY_BANDWIDTH
from vmtune.model.tunables.tunable import Value

_HELD_BY_LIMIT = 0.85
"""From this share of its limit on, a copy was held by it, and the storage may be faster."""
_SPREAD = 0.2
"""What a pace that was seen varies by, at least."""
_UNPROVEN = 0.3
"""Of what the network carries, storage that nothing was copied from or to yet may have no more."""
_LEAST_BYTES = 64 << 20
"""With less, what was measured is mostly the beginning."""
_GROWS = 1.05
"""Of what an image takes on its host that is copied at most, for clusters that are used in part."""


@dataclass(frozen=True, slots=True)
class Copied:
    """How fast one migration copied its disks, all together.

    :param held_by_limit: its bandwidth limit was reached.
    """

    bytes_per_s: float
    held_by_limit: bool


@dataclass(frozen=True, slots=True)
class CopyProspect:
    """What is to be expected of the copy of the disks, without what the guest writes meanwhile.

    :param ms: None where the path's throughput is not known.
    :param records: how many copies between these hosts say so.
    :param sizes_known: of all disks it is known what they take.
    """

    bytes: Range
    ms: Range | None
    bytes_per_s: Range | None
    records: int
    sizes_known: bool


def limit_of(values: Mapping[str, Value]) -> int | None:
    """The most that the copy of each disk may take; None for no limit."""
    limit = values.get(COPY_BANDWIDTH, values.get("max_bandwidth_bytes_per_s"))
    return limit if isinstance(limit, int) and limit > 0 else None


def copied(record: Migration) -> Copied | None:
    """What a record says of such copies; None where it copied nothing, or too little."""
    ready = [disk.ready_ms for disk in record.disks if disk.ready_ms]
    amount = sum(disk.copied_bytes for disk in record.disks)
    if record.state is not MigrationState.COMPLETED or len(ready) < len(record.disks):
        return None
    if not ready or amount < _LEAST_BYTES:
        return None
    pace = amount / max(ready) * 1000
    limit = limit_of(record.wanted)
    most = None if limit is None else limit * len(ready)
    return Copied(pace, most is not None and pace >= _HELD_BY_LIMIT * most)


def expect_copy(
    disks: Sequence[Disk],
    past: Sequence[Copied],
    path: Throughput | None,
    limit_bytes_per_s: int | None,
    *,
    incremental: bool = False,
) -> CopyProspect:
    """The copy of *disks*, with at least one.

    :param past: of copies between the same hosts.
    :param path: what the network carries for the memory; None where it is not known.
    :param limit_bytes_per_s: for each disk; None for no limit.
    :param incremental: only the image on top is copied.
    """
    amount = _bytes(disks, incremental)
    known = all(disk.allocated_bytes is not None for disk in disks)
    most = None if limit_bytes_per_s is None else float(limit_bytes_per_s * len(disks))
    pace = _pace(past, path, most)
    ms = None
    if pace is not None:
        ms = Range(
            amount.low / pace.high * 1000,
            amount.likely / pace.likely * 1000,
            amount.high / pace.low * 1000,
        )
    return CopyProspect(amount, ms, pace, len(past), known)


def _bytes(disks: Sequence[Disk], incremental: bool) -> Range:
    low = likely = high = 0.0
    for disk in disks:
        capacity, taken = disk.capacity_bytes or 0, disk.allocated_bytes
        beneath = bool(disk.backing) and not incremental  # their data is copied along
        if taken is None:
            likely, high = likely + capacity, high + capacity
            continue
        low, likely = low + taken, likely + taken
        high += max(taken, capacity) if beneath else taken * _GROWS
    return Range(low, likely, high)


def _pace(past: Sequence[Copied], path: Throughput | None, most: float | None) -> Range | None:
    """Of all disks together."""
    free = [each.bytes_per_s for each in past if not each.held_by_limit]
    proven = max((each.bytes_per_s for each in past), default=0.0)
    if free:
        middle = statistics.median(free)
        found = Range(
            min(*free, middle * (1 - _SPREAD)), middle, max(*free, middle * (1 + _SPREAD))
        )
    elif most is not None and proven >= _HELD_BY_LIMIT * most:
        found = Range(min(proven, most), most, most)
    elif path is not None:
        carried = path.switchover_bytes_per_s  # the limit is each disk's, not the path's
        low = min(carried.likely, max(proven, _UNPROVEN * carried.low))
        found = Range(low, carried.likely, max(carried.high, proven))
    else:
        return None
    if most is None:
        return found
    return Range(min(found.low, most), min(found.likely, most), min(found.high, most))


def with_copy(memory: Prospect, copy: CopyProspect) -> Prospect:
    """The prospect of a migration that copies disks before its memory."""
    if memory.total_ms is None or memory.sent_bytes is None or copy.ms is None:
        return memory
    return replace(
        memory,
        total_ms=memory.total_ms.added(copy.ms),
        sent_bytes=memory.sent_bytes.added(copy.bytes),
    )
