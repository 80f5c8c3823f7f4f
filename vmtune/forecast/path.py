"""What the path between two hosts carries, from what earlier migrations sent over it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vmtune.forecast.conditions import compresses
from vmtune.forecast.limits import HELD_BY_LIMIT, limit_on_wire
from vmtune.forecast.ranges import Range
from vmtune.model.migration.record import Migration, MigrationState, Totals
from vmtune.model.tunables.tunable import Value

_SENT_LEAST_BYTES = 32 << 20
"""With less, what was measured is mostly the beginning and the end."""
_SWITCHOVER_LEAST_BYTES = 2 << 20
_SWITCHOVER_LEAST_MS = 5
UNPROVEN = 0.3
"""Of a limit that nothing was sent at yet, the path may carry no more than this share."""
_SPREAD = 0.1
"""What a throughput that was seen once varies by, at least."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What one migration sent.

    :param bytes_per_s: while the guest ran.
    :param held_by_limit: its bandwidth limit was reached: the path may carry more.
    :param switchover_bytes_per_s: at least, while the guest stood still, when QEMU lifts its limit
        (migration/migration.c, migration_completion); None where too little was sent then.
    :param packed_bytes_per_s: of memory, where compressing it took all the time that its threads
        had, so that nothing is said of the path; else None.
    """

    bytes_per_s: float
    held_by_limit: bool
    switchover_bytes_per_s: float | None = None
    packed_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Throughput:
    """Of a migration that is not begun.

    :param bytes_per_s: on the wire, while the guest runs.
    :param switchover_bytes_per_s: while it stands still.
    :param records: how many migrations say so; 0 where only the limit is known.
    :param limited: it is the bandwidth limit that holds it, not the path.
    :param packed_bytes_per_s: of memory, what is compressed at most; None where nobody has seen
        that, or nothing is compressed.
    """

    bytes_per_s: Range
    switchover_bytes_per_s: Range
    records: int
    limited: bool = False
    packed_bytes_per_s: Range | None = None


def sent(record: Migration) -> Sent | None:
    """What a record says of its path; None where it did not complete or sent too little."""
    totals = record.totals
    if record.state is not MigrationState.COMPLETED or totals is None:
        return None
    return sent_by(totals, record.wanted)


def sent_by(totals: Totals, values: Mapping[str, Value]) -> Sent | None:
    """The same of a completed migration's *totals*."""
    took_s = (totals.total_time_ms - totals.downtime_ms - (totals.setup_time_ms or 0)) / 1000
    if totals.transferred_bytes < _SENT_LEAST_BYTES or took_s <= 0:
        return None
    pace, limit = totals.transferred_bytes / took_s, limit_on_wire(values)
    set_to = values.get("max_bandwidth_bytes_per_s")
    if limit is None or not isinstance(set_to, int) or pace < HELD_BY_LIMIT * set_to:
        by_threads = compresses(values) and values.get("xbzrle") is not True
        packed = None
        if limit is not None and by_threads and totals.normal_bytes:
            packed = totals.normal_bytes / took_s
        return Sent(pace, False, packed_bytes_per_s=packed)
    rest = totals.transferred_bytes - limit * took_s
    faster = None
    if rest >= _SWITCHOVER_LEAST_BYTES and totals.downtime_ms >= _SWITCHOVER_LEAST_MS:
        faster = max(limit, rest / totals.downtime_ms * 1000)
    return Sent(min(pace, limit), True, faster)


def expect_throughput(past: Sequence[Sent], limit_bytes_per_s: float | None) -> Throughput | None:
    """What a migration with that limit will send.

    :param past: of the same path, the newest first.
    :return: None without a limit where no migration says what the path carries.
    """
    proven = max((each.bytes_per_s for each in past if each.held_by_limit), default=0.0)
    packed = [s.packed_bytes_per_s for s in past if s.packed_bytes_per_s is not None]
    packs = _about(packed) if packed and limit_bytes_per_s is not None else None
    # One below what another proved was held up by something else than the path.
    free = [
        s.bytes_per_s
        for s in past
        if not s.held_by_limit
        and s.bytes_per_s >= proven
        and (packs is None or s.packed_bytes_per_s is None)
    ]
    if free:
        path = _about(free)
        path = Range(max(path.low, proven), path.likely, path.high)
    elif limit_bytes_per_s is None:
        return None
    elif proven >= HELD_BY_LIMIT * limit_bytes_per_s:
        path = Range.exactly(limit_bytes_per_s)
    else:
        low = max(proven, UNPROVEN * limit_bytes_per_s)
        path = Range(low, limit_bytes_per_s, limit_bytes_per_s)
    lifted = [s.switchover_bytes_per_s for s in past if s.switchover_bytes_per_s is not None]
    if limit_bytes_per_s is not None:
        most = limit_bytes_per_s
        held = Range(min(path.low, most), min(path.likely, most), min(path.high, most))
    else:
        held = path
    if not free and lifted:
        path = Range(min(lifted), statistics.median(lifted), max(lifted))
    limited = limit_bytes_per_s is not None and held.likely >= limit_bytes_per_s
    return Throughput(held, path, len(past), limited, packs)


def _about(seen: Sequence[float]) -> Range:
    """The median of what was seen, within all of it."""
    middle = statistics.median(seen)
    return Range(min(*seen, middle * (1 - _SPREAD)), middle, max(*seen, middle * (1 + _SPREAD)))
