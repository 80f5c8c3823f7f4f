"""A metric of a scenario over time: when it changed, and what of the environment with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from vmtune.bench.environment import differences
from vmtune.bench.report_build import Plan, criterion_of, report_run
from vmtune.domain.metrics import METRICS, Direction, Metric
from vmtune.domain.runs import Place, Run, RunState
from vmtune.domain.tunables import Value
from vmtune.errors import InvalidInput, NotFound
from vmtune.services.comparisons_arms import runs_of
from vmtune.stats.model import Comparison, Observation, Scale
from vmtune.store import Store
from vmtune.store.run_rows import RunFilter

LEAST_POINTS = 20
"""As :data:`vmtune.stats.changes.LEAST_POINTS`, whose import takes a second."""
_WITH_VALUES = (RunState.COMPLETED, RunState.NOT_CONVERGED)


@dataclass(frozen=True, slots=True)
class Point:
    """A run's value."""

    run: UUID
    at: datetime
    value: float
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Shift:
    """A place where the values changed.

    :param at: the index of the first point after it.
    :param ratio: after by before, with its interval; None where there is none.
    :param matters: the interval lies beyond the margin.
    :param environment: the fields in which the environment became another at that place.
    """

    at: int
    run: UUID
    since: datetime
    ratio: float | None
    low: float | None
    high: float | None
    matters: bool
    text: str
    environment: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Strand:
    """Runs of one setup on one machine, in the order of time.

    :param changes: None where they were not looked for; *reason* says why.
    """

    host: str
    place: Place
    qemu: str
    profile: str
    values: Mapping[str, Value]
    points: tuple[Point, ...]
    changes: tuple[Shift, ...] | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """A metric over time, apart for each setup: what ran with other values is another thing."""

    scenario: str
    metric: Metric
    strands: tuple[Strand, ...]


class HistoryService:
    """Tells how a metric went over time."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def history(self, scenario: str, metric: str, profile: str | None = None) -> History:
        """A metric of a scenario over time, the setup with the most runs first.

        :raise InvalidInput: no such metric.
        :raise NotFound: no run of that scenario has it.
        """
        return await asyncio.to_thread(self._history, scenario, metric, profile)

    def _history(self, scenario: str, metric: str, profile: str | None) -> History:
        if metric not in METRICS:
            raise InvalidInput(
                f"there is no metric {metric[:60]!r}",
                field="metric",
                code="unknown_metric",
                remedy="`vmtune bench metrics` lists them",
            )
        wanted = RunFilter(scenario, profile=profile, states=_WITH_VALUES)
        setups: dict[str, list[Run]] = {}
        for run in runs_of(self._store, wanted):
            if metric in run.metrics:
                setups.setdefault(_setup(run), []).append(run)
        if not setups:
            raise NotFound(
                f"no run of {scenario[:100]} has {metric}",
                field="scenario",
                remedy="`vmtune bench runs` lists the runs",
            )
        most_first = sorted(setups.values(), key=len, reverse=True)
        row = METRICS[metric]
        return History(scenario, row, tuple(self._strand(row, runs) for runs in most_first))

    def _strand(self, metric: Metric, runs: Sequence[Run]) -> Strand:
        runs = sorted(runs, key=lambda run: run.started_at or run.created_at)
        points = tuple(
            Point(r.id, r.started_at or r.created_at, r.metrics[metric.name], r.fingerprint)
            for r in runs
        )
        found, reason = self._changes(metric, runs, points)
        last = runs[-1]
        return Strand(
            last.host, last.place, last.qemu, last.profile, last.values, points, found, reason
        )

    def _changes(
        self, metric: Metric, runs: Sequence[Run], points: Sequence[Point]
    ) -> tuple[tuple[Shift, ...] | None, str]:
        if len(points) < LEAST_POINTS:
            return None, f"changes are looked for in {LEAST_POINTS} runs or more"
        from vmtune.stats.changes import changes  # noqa: PLC0415 - takes two seconds

        plan = Plan("", (), (), primary_metric=metric.name, paired=False)
        criterion = criterion_of(metric, [point.value for point in points], plan)
        observations = [
            Observation(report.values[metric.name], censored=metric.name in report.censored)
            for report in (report_run(run, arm="") for run in runs)
        ]
        found = changes(observations, criterion)
        return tuple(self._shift(points, c.at, c.comparison, metric) for c in found), ""

    def _shift(self, points: Sequence[Point], at: int, found: Comparison, metric: Metric) -> Shift:
        effect = found.effect
        is_ratio = effect is not None and effect.scale is Scale.RATIO
        low, high = (effect.low, effect.high) if effect is not None else (None, None)
        matters = effect is not None and (
            (low is not None and low > effect.margin_high)
            or (high is not None and high < effect.margin_low)
        )
        before, after = points[at - 1], points[at]
        return Shift(
            at=at,
            run=after.run,
            since=after.at,
            ratio=effect.estimate if effect is not None and is_ratio else None,
            low=low if is_ratio else None,
            high=high if is_ratio else None,
            matters=matters,
            text=_text(found, metric, matters=matters),
            environment=self._differing(before.fingerprint, after.fingerprint),
        )

    def _differing(self, before: str, after: str) -> tuple[str, ...]:
        if before == after or not before or not after:
            return ()
        first, second = (self._store.runs.environment(each) for each in (before, after))
        return tuple(
            f"{each.field}: {each.first} before, {each.second} since"
            for each in differences(first, second)
        )


def _setup(run: Run) -> str:
    """The same for runs that can be held against each other over time."""
    return json.dumps([run.host, run.place, run.qemu, run.profile, dict(run.values)],
                      sort_keys=True)  # fmt: skip


def _text(found: Comparison, metric: Metric, *, matters: bool) -> str:
    """``1.32 times what it was (1.28 to 1.36): worse``."""
    effect = found.effect
    if effect is None:
        return "changed"
    if effect.scale is Scale.RATIO:
        size = f"{effect.estimate:.3g} times what it was"
        if effect.low is not None and effect.high is not None:
            size += f" ({effect.low:.3g} to {effect.high:.3g})"
    else:
        size = f"{effect.estimate:+.3g} {metric.unit.value}".rstrip()
    if not matters:
        return f"{size}, which may be within the margin"
    if metric.direction is Direction.NONE:
        return size
    rose = effect.estimate > (1 if effect.scale is Scale.RATIO else 0)
    return f"{size}: {'better' if rose == (metric.direction is Direction.HIGHER) else 'worse'}"
