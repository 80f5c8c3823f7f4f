"""A run's record in parts: what there is once, and what there is many times, by name.

Series are stored in chunks, given out page by page and exported as columns; all by this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from vmtune.bench.model.runs.boot_record import BootRecord
from vmtune.bench.model.runs.load_record import LoadRecord
from vmtune.bench.model.runs.run import CpuSample, GuestPass, RunRecord, Silence
from vmtune.bench.model.runs.send_record import SendRecord
from vmtune.bench.model.runs.srcu_record import SrcuRecord
from vmtune.bench.model.scenario.block import BlockRecord, CpuMark, ProcessSample
from vmtune.model.migration.controller_record import ReaperReport, ReaperRound, StepRecord
from vmtune.model.migration.postcopy_figures import PostcopyFigures
from vmtune.model.migration.record import Sample, Totals
from vmtune.model.plan.outcome import Outcome


class Series(StrEnum):
    """What a run has many of."""

    SAMPLES = "samples"
    PASSES = "passes"
    SILENCES = "silences"
    CPU = "cpu"
    ROUNDS = "rounds"
    PROCESSES = "processes"
    """What a block benchmark's QEMU took of its host."""
    CPU_MARKS = "cpu_marks"
    """CPU time of a block benchmark's QEMU."""


KINDS: Mapping[Series, type[Any]] = {
    Series.SAMPLES: Sample,
    Series.PASSES: GuestPass,
    Series.SILENCES: Silence,
    Series.CPU: CpuSample,
    Series.ROUNDS: ReaperRound,
    Series.PROCESSES: ProcessSample,
    Series.CPU_MARKS: CpuMark,
}
"""What each consists of; all have ``at_ms``."""
assert set(KINDS) == set(Series)

Rows = Mapping[Series, tuple[Any, ...]]  # any: of the kind of each


@dataclass(frozen=True, slots=True)
class Head:
    """What a record has once. The fields are those of :class:`RunRecord`; the reaper's report
    is without its rounds, and the record of blocks without its series."""

    migration_ms: int | None = None
    migration_ended_ms: int | None = None
    ended_ms: int = 0
    beat_interval_ms: float | None = None
    totals: Totals | None = None
    outcomes: tuple[Outcome, ...] = ()
    reaper: ReaperReport | None = None
    steps: tuple[StepRecord, ...] = ()
    ring_full_exits: int | None = None
    postcopy: PostcopyFigures | None = None
    block: BlockRecord | None = None
    boot: BootRecord | None = None
    srcu: SrcuRecord | None = None
    loads: LoadRecord | None = None
    sends: SendRecord | None = None


_ONCE = tuple(each.name for each in fields(Head))
_OF_BLOCK = {Series.PROCESSES: "processes", Series.CPU_MARKS: "cpu"}
"""Which part of a record of blocks each is."""
_MANY = tuple(s for s in Series if s is not Series.ROUNDS and s not in _OF_BLOCK)
assert {each.name for each in fields(RunRecord)} == {*_ONCE, *_MANY}, "a part without its place"


def apart(record: RunRecord) -> tuple[Head, Rows]:
    """*record* as its head and its series."""
    reaper = record.reaper
    once = {name: getattr(record, name) for name in _ONCE}
    once["reaper"] = replace(reaper, rounds=()) if reaper else None
    rows: dict[Series, tuple[Any, ...]] = {series: getattr(record, series) for series in _MANY}
    rows[Series.ROUNDS] = reaper.rounds if reaper else ()
    block = record.block
    once["block"] = replace(block, processes=(), cpu=()) if block else None
    for series, part in _OF_BLOCK.items():
        rows[series] = getattr(block, part) if block else ()
    return Head(**once), rows


def joined(head: Head, rows: Rows) -> RunRecord:
    """The record that :func:`apart` took apart; series that are left out are empty."""
    parts: dict[str, Any] = {name: getattr(head, name) for name in _ONCE}
    if head.reaper is not None:
        parts["reaper"] = replace(head.reaper, rounds=rows.get(Series.ROUNDS, ()))
    if head.block is not None:
        found: dict[str, Any] = {part: rows.get(s, ()) for s, part in _OF_BLOCK.items()}
        parts["block"] = replace(head.block, **found)
    for series in _MANY:
        parts[series.value] = rows.get(series, ())
    return RunRecord(**parts)
