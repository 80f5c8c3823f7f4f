"""A metric of a scenario over time: when it changed, and which parts of the environment changed
with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from vmtune.bench.machine.environment import differences
from vmtune.bench.model.metrics.table import METRICS, Direction, Metric
from vmtune.bench.model.runs.run import Place, Run, RunState
from vmtune.bench.report.build import LIMITS, Plan, criterion_of, report_run
from vmtune.errors import InvalidInput, NotFound
from vmtune.model.tunables.tunable import Value
from vmtune.stats.model import MOST_RUNS, Comparison, Observation, Scale
from vmtune.storage import Store
from vmtune.storage.paging import check_limit, make_cursor, read_cursor
from vmtune.storage.repositories.run_rows import RunFilter
from vmtune.storage.repositories.run_values import Measured

LEAST_POINTS = 20
"""As :data:`vmtune.stats.changes.LEAST_POINTS`, whose import takes a second."""
_LISTING = "history"
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
class SetupHistory:
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
    """A metric over time, apart for each setup: what ran with other values is another thing.

    :param next: what to pass as *after* for the setups that follow; None at the end.
    """

    scenario: str
    metric: Metric
    strands: tuple[SetupHistory, ...]
    next: str | None = None


class HistoryService:
    """Gives the history of a metric."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def history(
        self,
        scenario: str,
        metric: str,
        profile: str | None = None,
        after: str | None = None,
        limit: int = 20,
    ) -> History:
        """A metric of a scenario over time, from the newest 2,000 runs that have it; the setup
        with the most runs first.

        :param after: pages of one list are of the same runs: those that there were at the first.
        :raise InvalidInput: no such metric.
        :raise NotFound: no run of that scenario has it.
        """
        return await asyncio.to_thread(self._history, scenario, metric, profile, after, limit)

    def _history(
        self, scenario: str, metric: str, profile: str | None, after: str | None, limit: int
    ) -> History:
        if metric not in METRICS:
            raise InvalidInput(
                f"there is no metric {metric[:60]!r}",
                field="metric",
                code="unknown_metric",
                remedy="`vmtune bench metrics` lists them",
            )
        check_limit(limit)
        up_to: int | None = None
        first = 0
        if after is not None:
            up_to, first = (int(key) for key in read_cursor(_LISTING, after, int, int))
        wanted = RunFilter(scenario, profile=profile, states=_WITH_VALUES)
        newest = self._store.runs.measured(metric, wanted, up_to, MOST_RUNS)
        if not newest:
            raise NotFound(
                f"no run of {scenario[:100]} has {metric}",
                field="scenario",
                remedy="`vmtune bench runs` lists the runs",
            )
        setups: dict[str, list[Measured]] = {}
        for each in newest:
            setups.setdefault(_setup(each), []).append(each)
        most_first = sorted(setups.values(), key=len, reverse=True)
        beyond = first + limit
        more = beyond < len(most_first)
        row = METRICS[metric]
        return History(
            scenario,
            row,
            tuple(self._entry(row, runs) for runs in most_first[first:beyond]),
            make_cursor(_LISTING, newest[0].number, beyond) if more else None,
        )

    def _entry(self, metric: Metric, runs: Sequence[Measured]) -> SetupHistory:
        last = runs[0]
        runs = sorted(reversed(runs), key=lambda run: run.at)
        points = tuple(Point(r.id, r.at, r.value, r.fingerprint) for r in runs)
        found, reason = self._changes(metric, runs, points)
        return SetupHistory(
            last.host, last.place, last.qemu, last.profile, last.values, points, found, reason
        )

    def _changes(
        self, metric: Metric, runs: Sequence[Measured], points: Sequence[Point]
    ) -> tuple[tuple[Shift, ...] | None, str]:
        if len(points) < LEAST_POINTS:
            return None, f"changes are looked for in {LEAST_POINTS} runs or more"
        from vmtune.stats.changes import changes  # noqa: PLC0415 - takes two seconds

        plan = Plan("", (), (), primary_metric=metric.name, paired=False)
        criterion = criterion_of(metric, [point.value for point in points], plan)
        found = changes(self._observations(metric, runs), criterion)
        return tuple(self._shift(points, c.at, c.comparison, metric) for c in found), ""

    def _observations(self, metric: Metric, runs: Sequence[Measured]) -> list[Observation]:
        """The known bound of each value: a run ended at its limit gives a lower bound."""
        given_up = [run.id for run in runs if run.state is RunState.NOT_CONVERGED]
        least = LIMITS.get(metric.name)
        limits = self._store.runs.metrics(given_up, [least]) if least and given_up else {}
        reports = (
            report_run(
                Run(
                    id=run.id,
                    scenario="",
                    setup={},
                    values={},
                    state=run.state,
                    created_at=run.at,
                    metrics={metric.name: run.value, **limits.get(run.id, {})},
                ),
                arm="",
            )
            for run in runs
        )
        return [
            Observation(report.values[metric.name], censored=metric.name in report.censored)
            for report in reports
        ]

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


def _setup(run: Measured) -> str:
    """The same for runs that can be compared over time."""
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
