"""A run's record in parts: what there is once, and what there is many times, by name.

Series are stored in chunks, given out page by page and exported as columns; all of that goes by
this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from vmtune.domain.controlled import ReaperReport, ReaperRound, StepRecord
from vmtune.domain.migration import Sample, Totals
from vmtune.domain.outcome import Outcome
from vmtune.domain.runs import CpuSample, GuestPass, RunRecord, Silence


class Series(StrEnum):
    """What a run has many of."""

    SAMPLES = "samples"
    PASSES = "passes"
    SILENCES = "silences"
    CPU = "cpu"
    ROUNDS = "rounds"


KINDS: Mapping[Series, type[Any]] = {
    Series.SAMPLES: Sample,
    Series.PASSES: GuestPass,
    Series.SILENCES: Silence,
    Series.CPU: CpuSample,
    Series.ROUNDS: ReaperRound,
}
"""What each consists of; all have ``at_ms``."""
assert set(KINDS) == set(Series)

Rows = Mapping[Series, tuple[Any, ...]]  # any: of the kind of each


@dataclass(frozen=True, slots=True)
class Head:
    """What a record has once. The fields are those of :class:`RunRecord`; the reaper's report
    is without its rounds."""

    migration_ms: int | None = None
    migration_ended_ms: int | None = None
    ended_ms: int = 0
    beat_interval_ms: float | None = None
    totals: Totals | None = None
    outcomes: tuple[Outcome, ...] = ()
    reaper: ReaperReport | None = None
    steps: tuple[StepRecord, ...] = ()
    ring_full_exits: int | None = None


_ONCE = tuple(each.name for each in fields(Head))
_MANY = tuple(series for series in Series if series is not Series.ROUNDS)
assert {each.name for each in fields(RunRecord)} == {*_ONCE, *_MANY}, "a part without its place"


def apart(record: RunRecord) -> tuple[Head, Rows]:
    """*record* as its head and its series."""
    reaper = record.reaper
    once = {name: getattr(record, name) for name in _ONCE}
    once["reaper"] = replace(reaper, rounds=()) if reaper else None
    rows: dict[Series, tuple[Any, ...]] = {series: getattr(record, series) for series in _MANY}
    rows[Series.ROUNDS] = reaper.rounds if reaper else ()
    return Head(**once), rows


def together(head: Head, rows: Rows) -> RunRecord:
    """The record that :func:`apart` took apart; series that are left out are empty."""
    parts: dict[str, Any] = {name: getattr(head, name) for name in _ONCE}
    if head.reaper is not None:
        parts["reaper"] = replace(head.reaper, rounds=rows.get(Series.ROUNDS, ()))
    for series in _MANY:
        parts[series.value] = rows.get(series, ())
    return RunRecord(**parts)
