"""A metric of a scenario over time: when it changed, and which parts of the environment changed
with it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from vmtune.bench.machine.environment import differences
from vmtune.bench.model.metrics.table import METRICS, SUCCESS, Direction, Metric
from vmtune.bench.model.runs.run import Run, RunState
from vmtune.bench.model.trend.change import ChangeKind, FoundChange, SignStrength
from vmtune.bench.report.build import LIMITS, Plan, criterion_of, report_run
from vmtune.bench.report.report import ReportRun
from vmtune.bench.report.words import distinct_texts
from vmtune.bench.services.comparisons.setup_history import (
    CompletionShift,
    History,
    LostRun,
    Point,
    SetupHistory,
    Shift,
    Sign,
)
from vmtune.errors import InvalidInput, NotFound
from vmtune.stats.model import MAX_RUNS, Comparison, Observation, Scale
from vmtune.storage import Store
from vmtune.storage.paging import check_limit, make_cursor, read_cursor
from vmtune.storage.repositories.bench.run_rows import RunFilter
from vmtune.storage.repositories.bench.run_values import Measured

if TYPE_CHECKING:  # takes a second to import
    from vmtune.stats.changes import Change
    from vmtune.stats.early import EarlySign

NEAR = 5
"""Runs about a change in which its cause is looked for, and within which it is the same one."""
LEAST_POINTS = 20
"""As :data:`vmtune.stats.changes.LEAST_POINTS`, whose import takes a second."""
_LISTING = "history"
_ENDED = tuple(state for state in RunState if state.counts)


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

    async def setup(self, scenario: str, metric: str, id: str = "") -> SetupHistory:
        """The history of one setup.

        :param id: empty for the one with the most runs.
        :raise InvalidInput: no such metric.
        :raise NotFound: no run of that scenario has it, or no such setup.
        """
        return await asyncio.to_thread(self._one_setup, scenario, metric, id)

    def _one_setup(self, scenario: str, metric: str, id: str) -> SetupHistory:
        setups = _by_setup(self._measured(scenario, metric, None, None))
        found = next((runs for runs in setups if id in ("", setup_id(runs[0]))), None)
        if found is None:
            raise NotFound(
                f"{scenario[:100]} has no setup {id[:20]}",
                field="setup",
                remedy="`vmtune bench history` shows the setups and their ids",
            )
        kept = self._store.found_changes.of(scenario, metric)
        return self._entry(METRICS[metric], found, kept)

    def _measured(
        self, scenario: str, metric: str, profile: str | None, up_to: int | None
    ) -> Sequence[Measured]:
        if metric not in METRICS:
            raise InvalidInput(
                f"there is no metric {metric[:60]!r}",
                field="metric",
                code="unknown_metric",
                remedy="`vmtune bench metrics` lists them",
            )
        wanted = RunFilter(scenario, profile=profile, states=_ENDED)
        newest = self._store.runs.measured(metric, wanted, up_to, MAX_RUNS)
        if not newest:
            raise NotFound(
                f"no run of {scenario[:100]} has {metric}",
                field="scenario",
                remedy="`vmtune bench runs` lists the runs",
            )
        return newest

    def _history(
        self, scenario: str, metric: str, profile: str | None, after: str | None, limit: int
    ) -> History:
        check_limit(limit)
        up_to: int | None = None
        first = 0
        if after is not None:
            up_to, first = (int(key) for key in read_cursor(_LISTING, after, int, int))
        newest = self._measured(scenario, metric, profile, up_to)
        most_first = _by_setup(newest)
        beyond = first + limit
        more = beyond < len(most_first)
        row = METRICS[metric]
        kept = self._store.found_changes.of(scenario, metric)
        return History(
            scenario,
            row,
            tuple(self._entry(row, runs, kept) for runs in most_first[first:beyond]),
            make_cursor(_LISTING, newest[0].number, beyond) if more else None,
        )

    def _entry(
        self, metric: Metric, runs: Sequence[Measured], kept: Sequence[FoundChange]
    ) -> SetupHistory:
        last = runs[0]
        runs = sorted(reversed(runs), key=lambda run: run.at)
        observed = list(zip(runs, self._observations(metric, runs), strict=True))
        there = [(run, seen) for run, seen in observed if seen.value is not None]
        points = tuple(
            Point(run.id, run.at, seen.value, run.fingerprint, seen.censored)
            for run, seen in there
            if seen.value is not None
        )
        found, sign, reason = self._changes(metric, [seen for _, seen in there], points)
        id = setup_id(last)
        if found:
            found = tuple(
                replace(shift, found=same_change(shift, points, id, kept)) for shift in found
            )
        return SetupHistory(
            id,
            last.host,
            last.testbed,
            last.qemu,
            last.profile,
            last.values,
            points,
            found,
            reason,
            tuple(
                LostRun(run.id, run.at, run.state)
                for run, seen in observed
                if seen.value is None and seen.failed
            ),
            _completion(runs),
            sign,
        )

    def _changes(
        self, metric: Metric, observed: Sequence[Observation], points: Sequence[Point]
    ) -> tuple[tuple[Shift, ...] | None, Sign | None, str]:
        if len(points) < LEAST_POINTS:
            return None, None, f"changes are looked for in {LEAST_POINTS} runs or more"
        from vmtune.stats.changes import changes, newest_sign  # noqa: PLC0415 - takes two seconds

        plan = Plan("", (), (), primary_metric=metric.name, paired=False)
        criterion = criterion_of(metric, [point.value for point in points], plan)
        found = changes(observed, criterion)
        shifts = tuple(self._shift(points, change, metric) for change in found)
        return shifts, _sign(points, newest_sign(observed, found), metric), ""

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
                    metrics={
                        **({} if run.value is None else {metric.name: run.value}),
                        **limits.get(run.id, {}),
                    },
                ),
                arm="",
            )
            for run in runs
        )
        return [_observation(report, metric.name) for report in reports]

    def _shift(self, points: Sequence[Point], change: Change, metric: Metric) -> Shift:
        found, at = change.comparison, change.at
        effect = found.effect
        is_ratio = effect is not None and effect.scale is Scale.RATIO
        low, high = (effect.low, effect.high) if effect is not None else (None, None)
        matters = effect is not None and (
            (low is not None and low > effect.margin_high)
            or (high is not None and high < effect.margin_low)
        )
        of_spread, ramp = change.kind == "spread", change.kind == "ramp"
        after = points[at]
        environment, environment_after = self._cause(points, at, change.until)
        return Shift(
            at=at,
            run=after.run,
            since=after.at,
            kind=ChangeKind(change.kind.value),
            until=points[change.until].at if ramp else None,
            ratio=effect.estimate if effect is not None and is_ratio else None,
            low=low if is_ratio else None,
            high=high if is_ratio else None,
            spread=change.spread,
            matters=matters or of_spread,
            worse=not of_spread and matters and _worse(found, metric),
            text=_spread_text(change.spread)
            if of_spread
            else _text(found, metric, matters=matters, over=change.until - at if ramp else 0),
            environment=environment,
            environment_after=environment_after,
        )

    def _cause(self, points: Sequence[Point], at: int, until: int) -> tuple[tuple[str, ...], int]:
        """What became another nearest to a change, at most :data:`NEAR` runs from it."""
        places = [
            place
            for place in range(max(1, at - NEAR), min(len(points), max(at, until) + NEAR + 1))
            if points[place - 1].fingerprint != points[place].fingerprint
        ]
        if not places:
            return (), 0
        place = min(places, key=lambda each: abs(each - at))
        differing = self._differing(points[place - 1].fingerprint, points[place].fingerprint)
        return differing, place - at if differing else 0

    def _differing(self, before: str, after: str) -> tuple[str, ...]:
        if not before or not after:
            return ()
        first, second = (self._store.runs.environment(each) for each in (before, after))
        return tuple(
            f"{each.field}: {each.first} before, {each.second} since"
            for each in differences(first, second)
        )


def _observation(run: ReportRun, metric: str) -> Observation:
    """What *run* says of *metric*. A failed run has no value but of that which says that it has
    failed, whether a record was made of it or not."""
    value = run.values.get(metric) if run.counts else None
    if metric in SUCCESS.values():
        value = None if run.state.completed is None else float(run.state.completed)
    return Observation(
        value,
        censored=value is not None and metric in run.censored,
        failed=not run.state.succeeded,
    )


def _worse(found: Comparison, metric: Metric) -> bool:
    effect = found.effect
    if effect is None or metric.direction is Direction.NONE:
        return False
    rose = effect.estimate > (1 if effect.scale is Scale.RATIO else 0)
    return rose != (metric.direction is Direction.HIGHER)


def _spread_text(spread: float | None) -> str:
    """``the level stayed, the spread is 3 times what it was``."""
    if spread is None:
        return "the level stayed, the spread changed"
    return f"the level stayed, the spread is {spread:.2g} times what it was"


def _sign(points: Sequence[Point], sign: EarlySign | None, metric: Metric) -> Sign | None:
    if sign is None:
        return None
    from vmtune.stats.early import FALSE_AT_MOST  # noqa: PLC0415 - takes a second

    first = points[sign.at]
    ratio = sign.after / sign.before if sign.before > 0 and sign.after > 0 else None
    newest = len(points) - sign.at
    wrong = FALSE_AT_MOST[sign.strength]
    size = (
        f"{_size_text(ratio, Scale.RATIO, metric)} against the median before"
        if ratio is not None
        else _size_text(sign.after - sign.before, Scale.DIFFERENCE, metric)
    )
    return Sign(
        sign.at,
        first.run,
        first.at,
        ratio,
        SignStrength(sign.strength.value),
        wrong,
        f"the last {newest} runs: {size}; provisional, more runs confirm it or not: up to "
        f"{100 * wrong:.2g} % of histories without a change show a sign as {sign.strength.value} "
        "as this",
    )


def _size_text(value: float, scale: Scale, metric: Metric) -> str:
    (text,) = distinct_texts((value,), scale, metric.unit)
    return text


def same_change(
    shift: Shift, points: Sequence[Point], setup: str, kept: Sequence[FoundChange]
) -> FoundChange | None:
    """The kept change that a found one is: of its kind, and nearest among those at most
    :data:`NEAR` runs away, for more runs may move the place."""
    places = {point.run: place for place, point in enumerate(points)}
    near = [
        each
        for each in kept
        if each.setup == setup
        and (each.kind == "spread") == (shift.kind == "spread")
        and abs(places.get(each.run, len(points) + NEAR + shift.at) - shift.at) <= NEAR
    ]
    return min(near, key=lambda each: abs(places[each.run] - shift.at), default=None)


def _completion(runs: Sequence[Measured]) -> tuple[CompletionShift, ...] | None:
    """Where the share that succeeds changed for certain."""
    if len(runs) < LEAST_POINTS:
        return None
    from vmtune.stats.changes import completion_changes  # noqa: PLC0415 - takes two seconds

    found = []
    for change in completion_changes([run.state.succeeded for run in runs]):
        shares = change.comparison.shares
        if shares is not None and shares.p <= _COMPLETION_P:
            first = runs[change.at]
            before, after = shares.a_count / shares.a_runs, shares.b_count / shares.b_runs
            found.append(CompletionShift(first.id, first.at, before, after))
    return tuple(found)


_COMPLETION_P = 0.01


def _by_setup(newest: Sequence[Measured]) -> list[list[Measured]]:
    """The runs of each setup, the one with the most first."""
    setups: dict[str, list[Measured]] = {}
    for each in newest:
        setups.setdefault(_setup(each), []).append(each)
    return sorted(setups.values(), key=len, reverse=True)


def setup_id(run: Measured) -> str:
    """Eight hexadecimal digits of what makes a setup."""
    return hashlib.sha256(_setup(run).encode()).hexdigest()[:8]


def _setup(run: Measured) -> str:
    """The same for runs that can be compared over time."""
    return json.dumps([run.host, run.testbed, run.qemu, run.profile, dict(run.values)],
                      sort_keys=True)  # fmt: skip


def _text(found: Comparison, metric: Metric, *, matters: bool, over: int = 0) -> str:
    """``+32 % (+28 % to +36 %): worse``.

    :param over: of a ramp, its runs.
    """
    effect = found.effect
    if effect is None:
        return "changed"
    if effect.scale is Scale.RATIO:
        values = (effect.estimate, effect.low or effect.estimate, effect.high or effect.estimate)
        told, low, high = distinct_texts(values, effect.scale, metric.unit)
        size = told
        if effect.low is not None and effect.high is not None:
            size += f" ({low} to {high})"
    else:
        size = _size_text(effect.estimate, effect.scale, metric)
    if over:
        size += f", gradually over {over} runs"
    if not matters:
        return f"{size}, which may be within the margin"
    if metric.direction is Direction.NONE:
        return size
    return f"{size}: {'worse' if _worse(found, metric) else 'better'}"
