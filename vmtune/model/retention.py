"""Retention: how long records and samples are kept, and how samples are thinned. Pure. Records are
kept without limit,

and so are benchmark runs with all that they measured: they are
results. What grows with every second that is watched is thinned first and dropped later.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta

from vmtune.model.migration.record import Sample

_MS_IN_S = 1000
MAX_BOUNDARIES = 10
"""Marks of iterations that are kept of one stretch; each of a migration's last ones may take
only a few milliseconds."""


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """How long each kind is kept; 0 days means without limit. See vmtune.config.cluster.

    :param samples_thinned_s: the length of a stretch of which one sample and the peaks are kept.
    """

    samples_whole_days: int
    samples_thinned_s: int
    samples_days: int
    audit_days: int
    gone_vms_days: int
    idempotency_days: int
    webhook_days: int
    forecast_days: int

    def until(self, now: datetime) -> Cutoffs:
        """What is old enough by *now*."""
        return Cutoffs(
            _before(now, self.samples_whole_days),
            _before(now, self.samples_days),
            _before(now, self.audit_days),
            _before(now, self.gone_vms_days),
            _before(now, self.idempotency_days),
            _before(now, self.webhook_days),
            _before(now, self.forecast_days),
        )


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """Samples of migrations that ended before, entries that were made before, VMs that are gone and
    were last seen before, idempotency keys that came before, deliveries of webhooks that ended
    before, forecasts whose migration ended before; None for none."""

    thin: datetime | None
    drop: datetime | None
    audit: datetime | None
    gone_vms: datetime | None
    keys: datetime | None
    deliveries: datetime | None
    forecasts: datetime | None


def _before(now: datetime, days: int) -> datetime | None:
    if not days:
        return None
    try:
        return now - timedelta(days=days)
    except OverflowError:
        return None  # before the calendar begins


MARKS = ("at_ms", "status", "boundary")
COUNTERS = (
    "iteration", "transferred_bytes", "total_bytes", "zero_pages", "normal_pages",
    "page_size_bytes", "multifd_bytes", "postcopy_bytes", "missed_zero_copy",
)  # fmt: skip
"""They only grow, or stay: the last of a stretch says all."""
GAUGES = (
    "remaining_bytes", "dirty_pages_per_s", "throughput_bytes_per_s", "expected_downtime_ms",
    "throttle_percent", "dirty_limit_throttle_us", "dirty_limit_ring_full_us",
)  # fmt: skip
"""They go up and down: the highest and the lowest of a stretch are kept."""
assert sorted((*MARKS, *COUNTERS, *GAUGES)) == sorted(f.name for f in fields(Sample)), (
    "a sample's field that thinning does not know"
)
_OF_GAUGE = tuple(operator.attrgetter(name) for name in GAUGES)


def thin(samples: Iterable[Sample], stretch_s: int) -> Iterator[Sample]:
    """The samples that are kept, in their order, of each stretch of so many seconds since the
    migration's start: the last one; where each gauge is highest and lowest, first; the first
    of each phase; the first few that begin an iteration.

    Each is an unchanged sample. Thinning what is thin changes nothing.
    """
    stretch_ms = stretch_s * _MS_IN_S
    held: list[Sample] = []
    begins: set[int] = set()
    status = None
    for sample in samples:
        if held and sample.at_ms // stretch_ms != held[0].at_ms // stretch_ms:
            yield from _of_stretch(held, begins)
            held, begins = [], set()
        if sample.status is not status:
            begins.add(len(held))
            status = sample.status
        held.append(sample)
    if held:
        yield from _of_stretch(held, begins)


def _of_stretch(held: Sequence[Sample], begins: set[int]) -> Iterator[Sample]:
    kept = {*begins, len(held) - 1}
    kept.update([place for place, one in enumerate(held) if one.boundary][:MAX_BOUNDARIES])
    for value_of in _OF_GAUGE:
        known = [place for place, one in enumerate(held) if value_of(one) is not None]
        if known:
            kept.add(max(known, key=lambda place: value_of(held[place])))
            kept.add(min(known, key=lambda place: value_of(held[place])))
    return (held[place] for place in sorted(kept))
