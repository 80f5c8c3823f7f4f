"""What a picture of a run marks in all of its tracks: phases, iterations, stops, steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vmtune.bench.model.runs.run import Run, RunRecord, RunState, Silence
from vmtune.bench.plots.tracks import Window

MAX_SILENCES = 200
_LEAST_SILENCE_MS = 40.0
"""Shorter ones are the guest's and the host's everyday business."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time with a name."""

    label: str
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment with a name.

    :param details: more of it, for a tooltip.
    """

    label: str
    at: float
    details: str = ""


@dataclass(frozen=True, slots=True)
class Marks:
    """All of them, in the order of time.

    :param silences: when no heartbeat arrived from the guest.
    :param longest: of them, during the migration; None where there was none.
    :param downtime: as QEMU reports it, at about the switchover: QEMU does not report when exactly.
    """

    phases: tuple[Span, ...] = ()
    iterations: tuple[Mark, ...] = ()
    silences: tuple[Silence, ...] = ()
    longest: Silence | None = None
    steps: tuple[Mark, ...] = ()
    switchover: Mark | None = None
    downtime: Span | None = None


def marks_of(run: Run, window: Window) -> Marks:
    """What is to be marked of *run* within *window*."""
    record = run.record
    if record is None:
        return Marks()
    silences = _silences(record, window)
    switchover = _switchover(run, record)
    return Marks(
        phases=tuple(_phases(record, window)),
        iterations=tuple(_iterations(record)),
        silences=silences,
        longest=_longest(record, silences),
        steps=tuple(
            Mark(str(number), float(step.at_ms), f"{step.action}: {step.reason}")
            for number, step in enumerate(record.steps, 1)
        ),
        switchover=switchover,
        downtime=_downtime(record, switchover),
    )


def _phases(record: RunRecord, window: Window) -> Iterator[Span]:
    begun, over = record.migration_ms, record.migration_ended_ms
    if begun is None:
        yield Span("no migration was begun", window.low, window.high)
        return
    end = window.high if over is None else float(over)
    if begun > window.low:
        yield Span("warm-up", window.low, float(begun))
    yield Span("migration", float(begun), end)
    if end < window.high:
        yield Span("cool-down", end, window.high)


def _iterations(record: RunRecord) -> Iterator[Mark]:
    """When each began, as far as it was seen."""
    seen = 0
    for sample in record.samples:
        if sample.iteration > seen:
            seen = sample.iteration
            yield Mark(str(seen), float(sample.at_ms), f"iteration {seen} begins")


def _silences(record: RunRecord, window: Window) -> tuple[Silence, ...]:
    """The longest ones, without those too short to notice."""
    shown = [
        s
        for s in record.silences
        if s.duration_ms >= _LEAST_SILENCE_MS
        and s.at_ms < window.high
        and s.at_ms + s.duration_ms > window.low
    ]
    longest = sorted(shown, key=lambda s: -s.duration_ms)[:MAX_SILENCES]
    return tuple(sorted(longest, key=lambda s: s.at_ms))


def _longest(record: RunRecord, silences: tuple[Silence, ...]) -> Silence | None:
    if record.migration_ms is None:
        return None
    over = record.ended_ms if record.migration_ended_ms is None else record.migration_ended_ms
    touching = [
        s for s in silences if s.at_ms <= over and s.at_ms + s.duration_ms >= record.migration_ms
    ]
    return max(touching, key=lambda s: s.duration_ms, default=None)


def _switchover(run: Run, record: RunRecord) -> Mark | None:
    """When the guest went over. Pre-copy has no event for it; it is the last thing that happens."""
    for sample in record.samples:
        if sample.status.in_postcopy:
            return Mark("post-copy", float(sample.at_ms), "the guest runs on the destination")
    totals = record.totals
    if run.state is not RunState.COMPLETED or record.migration_ended_ms is None or not totals:
        return None
    at = float(record.migration_ended_ms - totals.downtime_ms)
    return Mark("switchover", at, "the guest goes over to the destination")


def _downtime(record: RunRecord, switchover: Mark | None) -> Span | None:
    if switchover is None or record.totals is None or not record.totals.downtime_ms:
        return None
    lasted = record.totals.downtime_ms
    words = f"QEMU reports a downtime of {lasted:,} ms"
    begin = switchover.at - lasted if switchover.label == "post-copy" else switchover.at
    return Span(words, begin, begin + lasted)
