"""The guest's pace in the migration, compared with its own in warm-up. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

from vmtune.bench.migration.guest_passes import Span, Stretch, overlap, stretches, union
from vmtune.bench.model.metrics.table import SLOW_FACTOR
from vmtune.bench.model.runs.run import RunRecord

_GIB = 1 << 30
_MIB = 1 << 20


def guest_metrics(record: RunRecord, migration: Span | None) -> dict[str, float]:
    """The metrics of the group ``guest``; those that could not be had are missing.

    :param migration: from its start to its end; None where there was none.
    """
    warm_up_ends = migration[0] if migration else record.ended_ms
    all_of_it = stretches(record.passes, record.ended_ms)
    calm = [s for s in all_of_it if s.ended and not s.first and s.until_ms <= warm_up_ends]
    metrics: dict[str, float] = {}
    paces = _paces(calm)
    if calm:
        metrics["guest_baseline_ms_per_gib"] = median(s.pace for s in calm) * _GIB
    if migration is None:
        return metrics
    if calm:
        metrics |= _slowness(all_of_it, paces, (migration[0], record.ended_ms))
    metrics |= _progress(all_of_it, calm, migration)
    longest = _longest_silence(record, migration)
    if longest is not None:
        metrics["guest_silence_ms"] = longest
    return metrics


def _paces(calm: Sequence[Stretch]) -> Mapping[int, float]:
    """Each worker's median; that of all for a worker without any."""
    by_worker: dict[int, list[float]] = defaultdict(list)
    for stretch in calm:
        by_worker[stretch.worker].append(stretch.pace)
    everybody = median([s.pace for s in calm] or [0.0])
    found: dict[int, float] = defaultdict(lambda: everybody)
    found.update({worker: median(paces) for worker, paces in by_worker.items()})
    return found


def _slowness(
    all_of_it: Sequence[Stretch], paces: Mapping[int, float], window: Span
) -> dict[str, float]:
    """Worst pace, time in slow passes, and time lost in them."""
    seen = [s for s in all_of_it if s.until_ms > window[0]]
    slow = [s for s in seen if s.pace > SLOW_FACTOR * paces[s.worker]]
    metrics = {
        "guest_drop_ms": union(_within(s.working, window) for s in slow),
        "guest_excess_ms": sum(_lost(s, paces[s.worker], window) for s in slow)
        / len({s.worker for s in all_of_it}),
    }
    # One that has not ended has not been slow until it has taken longer than others do.
    counted = [s for s in seen if s.ended or s in slow]
    if counted:
        metrics["guest_worst_ms_per_gib"] = max(s.pace for s in counted) * _GIB
    return metrics


def _within(span: Span, window: Span) -> Span:
    begin = min(max(span[0], window[0]), window[1])
    return begin, max(begin, min(span[1], window[1]))


def _lost(stretch: Stretch, pace: float, window: Span) -> float:
    begin, end = stretch.working
    if end <= begin:
        return 0.0
    lost = (stretch.pace - pace) * stretch.written_bytes * stretch.passes
    return lost * overlap(stretch.working, window) / (end - begin)


def _progress(
    all_of_it: Sequence[Stretch], calm: Sequence[Stretch], migration: Span
) -> dict[str, float]:
    """How much the guest wrote during the migration, and of what it writes otherwise."""
    lasted = migration[1] - migration[0]
    if not all_of_it or lasted <= 0:
        return {}
    written = 0.0
    for stretch in all_of_it:
        span = (stretch.since_ms, stretch.until_ms)
        if span[1] > span[0]:
            share = overlap(span, migration) / (span[1] - span[0])
            written += share * stretch.written_bytes * stretch.passes
    rate = written / _MIB / lasted * 1000
    metrics = {"guest_write_mib_per_s": rate}
    own = _own_rate(calm, migration[0] / 2)
    if own and {s.worker for s in calm} == {s.worker for s in all_of_it}:
        metrics["guest_write_share_percent"] = 100 * rate / own
    return metrics


def _own_rate(calm: Sequence[Stretch], since_ms: float) -> float:
    """MiB a second of all workers together, in whole passes of warm-up's second half."""
    by_worker: dict[int, list[Stretch]] = defaultdict(list)
    for stretch in calm:
        by_worker[stretch.worker].append(stretch)
    total = 0.0
    for own in by_worker.values():
        late = [s for s in own if s.since_ms >= since_ms] or own
        time_ms = sum(s.until_ms - s.since_ms for s in late)
        total += sum(s.written_bytes * s.passes for s in late) / _MIB / time_ms * 1000
    return total


def _longest_silence(record: RunRecord, migration: Span) -> float | None:
    if record.beat_interval_ms is None:
        return None
    touching = [
        s.duration_ms
        for s in record.silences
        if s.at_ms <= migration[1] and s.at_ms + s.duration_ms >= migration[0]
    ]
    return max(touching, default=None)
