"""What the samples of a running migration say of its end.

Each synchronisation of QEMU's bitmap tells how much the guest dirtied since the one before: points
of its dirty curve. Until the first one only the length of the first pass is known, and whether the
migration will end is not.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from vmtune.forecast.course import Conditions, Moment
from vmtune.forecast.dirty_curve import DirtyCurve, concave, of_about_one_time
from vmtune.forecast.limits import HELD_BY_LIMIT
from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.migration.record import QemuStatus, Sample

_PACE_OVER_MS = 3000
"""Throughput is that of the last so many milliseconds: steady against QEMU's bursts of 100 ms."""
_PACE_EVERY_MS = 250
"""Between those that are kept: a service follows many migrations, and samples come 20 times a
second."""
_POINTS = 12
"""How many synchronisations the dirty curve is made of, the latest."""
_ENOUGH_BYTES = 4 << 20
_SETTLED_MS = 300
"""Before that, connections are made and what was sent says nothing of the pace."""

_BURST_SENT_MS = 75.0
"""How long ago a tenth of a second is taken to have begun in which a limited migration is seen: its
burst is short, so that a sample mostly comes after it. Of 50 to 90 the best for the published
migrations; with 0, as if the burst were yet to come, what was said was some 75 ms short."""
_BURST_TIMES = 4
"""How much faster than its limit such a burst is taken to be: 2 to 10 made little difference."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What was sent by a moment: bytes on the wire, bytes of memory, and of that what is not of
    zero pages."""

    at_ms: int
    wire_bytes: int
    memory_bytes: int
    nonzero_bytes: int


@dataclass(frozen=True, slots=True)
class Followed:
    """What was seen of a running migration so far; ``Followed()`` before its first sample.

    :param points: of the guest's dirty curve, each with the throttle of its time taken out.
    :param synced: at the last synchronisation, or at the beginning.
    :param dirtied_from: at the second synchronisation: what is sent from then on was dirtied by the
        guest while it migrated.
    :param paces: of the last seconds, about evenly spaced.
    :param last: the last sample.
    :param syncs: synchronisations that were seen.
    """

    points: tuple[DirtyPoint, ...] = ()
    synced: Pace | None = None
    dirtied_from: Pace | None = None
    paces: tuple[Pace, ...] = ()
    last: Sample | None = None
    syncs: int = 0


def observe(before: Followed, sample: Sample) -> Followed:
    """*before* with *sample*, which comes after all samples before."""
    now = _pace(sample)
    last = before.last
    if last is None or before.synced is None:
        return Followed(synced=now, paces=(now,), last=sample)
    kept = now.at_ms - before.paces[-1].at_ms >= _PACE_EVERY_MS
    paces = _recent((*before.paces, now)) if kept else before.paces
    seen = replace(before, paces=paces, last=sample)
    if sample.iteration <= last.iteration:
        return seen
    sent = now.memory_bytes - _memory_bytes(last)
    dirtied = max(0.0, sample.remaining_bytes - last.remaining_bytes + sent)
    took_ms = (sample.at_ms - before.synced.at_ms) * (1 - last.withheld_percent / 100)
    point = DirtyPoint(max(1.0, took_ms), dirtied)
    # The first count is the beginning itself: all memory is dirty, and none of it was dirtied.
    alone = last.iteration > 0 and sample.iteration == last.iteration + 1
    points = (*before.points, point)[-_POINTS:] if alone else before.points
    return replace(
        seen,
        points=points,
        synced=now,
        # What the first pass left of untouched memory is sent in the second.
        dirtied_from=seen.dirtied_from or (now if before.syncs else None),
        syncs=before.syncs + (last.iteration > 0),
    )


def _pace(sample: Sample) -> Pace:
    nonzero = sample.normal_pages * sample.page_size_bytes
    return Pace(sample.at_ms, sample.transferred_bytes, _memory_bytes(sample), nonzero)


def _memory_bytes(sample: Sample) -> int:
    return (sample.zero_pages + sample.normal_pages) * sample.page_size_bytes


def _recent(paces: tuple[Pace, ...]) -> tuple[Pace, ...]:
    """Those of the last seconds, and the newest one before."""
    oldest = paces[-1].at_ms - _PACE_OVER_MS
    first = max((n for n, pace in enumerate(paces) if pace.at_ms <= oldest), default=0)
    return paces[first:]


def throughput_bytes_per_s(seen: Followed) -> float | None:
    """Of the last seconds; None before something was sent."""
    if seen.last is None:
        return None
    first, last = seen.paces[0], _pace(seen.last)
    took_ms, sent = last.at_ms - first.at_ms, last.wire_bytes - first.wire_bytes
    if took_ms < _SETTLED_MS or sent <= 0:
        return None
    return sent / took_ms * 1000


def wire_share(seen: Followed) -> float:
    """Bytes sent for a byte that the guest dirtied, at most about 1: of the passes after the first,
    or where too little of them was sent of the pages that were not zero in the first."""
    if seen.last is None:
        return 1.0
    now, first = _pace(seen.last), seen.dirtied_from
    if first is not None and now.memory_bytes - first.memory_bytes >= _ENOUGH_BYTES:
        sent, memory = now.wire_bytes - first.wire_bytes, now.memory_bytes - first.memory_bytes
    else:
        sent, memory = now.wire_bytes, now.nonzero_bytes
    return min(1.05, max(0.001, sent / memory)) if memory > 0 else 1.0


def measured(seen: Followed, conditions: Conditions) -> Conditions | None:
    """*conditions* with the throughput and the share of what was seen lately; None before
    anything was sent."""
    pace = throughput_bytes_per_s(seen)
    if pace is None:
        return None
    limit = conditions.limit_bytes_per_s
    held = limit if limit is not None and pace >= HELD_BY_LIMIT * limit else None
    return replace(
        conditions,
        throughput_bytes_per_s=pace if held is None else held,
        wire_share=wire_share(seen),
        first_wire_share=None,
        cache_bytes=None,
        limited=held is not None,
        burst_bytes_per_s=None if held is None else held * _BURST_TIMES,
    )


def standing(seen: Followed, before: Sequence[DirtyPoint] = ()) -> tuple[DirtyCurve, Moment] | None:
    """The guest's dirty curve and where the migration stands; None before the first
    synchronisation that tells of the curve, and outside pre-copy.

    :param before: of the curve, what was measured before the migration. Passes that are longer than
        the guest needs to write to all that it works on tell nothing of how fast it does.
    """
    sample = seen.last
    if sample is None or seen.synced is None or not seen.points:
        return None
    if sample.status is not QemuStatus.ACTIVE:
        return None
    moment = Moment(
        sample.remaining_bytes,
        max(1.0, sample.at_ms - seen.synced.at_ms),
        _memory_bytes(sample) - seen.synced.memory_bytes,
        sample.withheld_percent,
        burst_sent_ms=_BURST_SENT_MS,
    )
    points = _typical(seen.points)
    return concave((*points, *_shorter(before, points[0]))), moment


def _shorter(before: Sequence[DirtyPoint], first: DirtyPoint) -> Iterator[DirtyPoint]:
    """The points of *before* that are of a shorter time than *first*, at its level."""
    known = concave(before).dirty_bytes(first.after_ms)
    if known <= 0:
        return
    for point in before:
        if point.after_ms < first.after_ms:
            yield DirtyPoint(point.after_ms, point.dirty_bytes * first.dirty_bytes / known)


def _typical(points: tuple[DirtyPoint, ...]) -> tuple[DirtyPoint, ...]:
    """Of points at about the same time, the median."""
    return tuple(
        DirtyPoint(
            statistics.median(point.after_ms for point in group),
            statistics.median(point.dirty_bytes for point in group),
        )
        for group in of_about_one_time(points)
    )
