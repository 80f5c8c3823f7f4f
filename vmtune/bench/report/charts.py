"""Where the charts of a report draw what: intervals, and strips of all runs. The templates
``interval.svg`` and ``strip.svg`` draw them.

No scripts: each point has a title that says what it is. Colours come from the page's style, so that
light and dark fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vmtune.bench.report.report import Report, ReportCell, ReportMetric, ReportRun
from vmtune.bench.report.tables import PairResults
from vmtune.bench.report.words import direction_text, ratio_text, value_text
from vmtune.rendering.scale import Scale
from vmtune.stats import model
from vmtune.stats.model import Comparison, Design, Summary
from vmtune.units import Unit

_LOG_FROM = 20.0  # from this ratio of largest to smallest on, strips are logarithmic
_NAME_PX, _STRIP_PX = 120, 440
_INTERVAL_PX, _EDGE_PX = 180, 8
_TICKS = 4
_BY_BLOCK = "B against A"


@dataclass(frozen=True, slots=True)
class Interval:
    """An effect with its interval and the margin, in pixels.

    :param band: the margin: where it begins and how wide it is.
    :param zero: no effect at all.
    :param reach: both ends of the interval; none without one.
    :param ends: each end: where, whether it continues beyond the axis, and which way is inwards.
    """

    label: str
    band: tuple[float, float]
    zero: float
    dot: float
    reach: tuple[float, float] | None
    ends: tuple[tuple[float, bool, int], ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One run, or one block.

    :param lift: how far it is moved up or down, so that points do not cover each other.
    :param limit: the true value lies to its right.
    """

    x: float
    lift: float
    label: str
    limit: bool = False


@dataclass(frozen=True, slots=True)
class StripRow:
    """An arm's points.

    :param base: others are compared with it.
    :param box: from quartile to quartile.
    """

    name: str
    points: tuple[Point, ...]
    base: bool = False
    box: tuple[float, float] | None = None
    median: float | None = None


@dataclass(frozen=True, slots=True)
class Strip:
    """Rows of points above one axis.

    :param note: which way is better.
    :param ticks: where, and the label.
    :param zero: no effect at all; none where the values are no effects.
    """

    title: str
    note: str
    label: str
    ticks: tuple[tuple[float, str], ...]
    rows: tuple[StripRow, ...]
    band: tuple[float, float] | None = None
    zero: float | None = None


def column_axis(comparisons: Sequence[Comparison]) -> Scale:
    """One axis for all effects that are ratios, the same to both sides of 1. It holds them all."""
    ends = [
        end
        for comparison in comparisons
        if (effect := comparison.effect) and effect.scale is model.Scale.RATIO
        for end in (effect.estimate, effect.low, effect.high, effect.margin_high)
        if end
    ]
    widest = max((max(end, 1 / end) for end in ends), default=1.1)
    widest = max(1.1, widest) ** 1.08
    return Scale(1 / widest, widest, _EDGE_PX, _INTERVAL_PX - _EDGE_PX, logarithmic=True)


def interval(comparison: Comparison, axis: Scale, label: str) -> Interval | None:
    """An effect on *axis*, or, where it is no ratio, on one of its own, the same to both sides of
    0; none where there is no effect."""
    effect = comparison.effect
    if effect is None:
        return None
    ratio = effect.scale is model.Scale.RATIO
    if not ratio:
        ends = (effect.estimate, effect.low or 0, effect.high or 0, effect.margin_high)
        widest = max(map(abs, ends)) * 1.15 or 1.0
        axis = Scale(-widest, widest, axis.begin, axis.end)
    low = axis.low if effect.low is None else effect.low
    high = axis.high if effect.high is None else effect.high
    known = effect.low is not None or effect.high is not None
    begin, end = axis(low), axis(high)
    return Interval(
        label,
        _band(effect, axis),
        axis(1.0 if ratio else 0.0),
        axis(effect.estimate),
        (begin, end) if known else None,
        (
            (begin, effect.low is None or low < axis.low, 1),
            (end, effect.high is None or high > axis.high, -1),
        )
        if known
        else (),
    )


def _band(effect: model.Effect, axis: Scale) -> tuple[float, float]:
    begin = axis(effect.margin_low)
    return begin, max(1.0, axis(effect.margin_high) - begin)


def strips(report: Report, cell: ReportCell, pairs: Sequence[PairResults]) -> Iterator[Strip]:
    """Every run of every arm, metric by metric; those without values are left out."""
    base = {pair.a for pair in pairs}
    order = dict.fromkeys(
        [each.metric for each in cell.comparisons] + [each.metric for each in cell.spreads]
    )
    for metric in map(report.metric, order):
        compared = [
            c for c in cell.comparisons if c.metric == metric.name and not c.criterion.share
        ]
        summaries = {arm.arm: arm for c in compared for arm in (c.a, c.b)}
        summaries |= {s.summary.arm: s.summary for s in cell.spreads if s.metric == metric.name}
        arms = [
            (summary, [r for r in report.runs_of(cell.name, arm) if _has(r, metric)])
            for arm, summary in summaries.items()
        ]
        if any(runs for _, runs in arms):
            yield _strip(metric, arms, base)


def _has(run: ReportRun, metric: ReportMetric) -> bool:
    return run.counts and metric.name in run.values


def _strip(
    metric: ReportMetric, arms: Sequence[tuple[Summary, list[ReportRun]]], base: set[str]
) -> Strip:
    axis = _strip_axis([run.values[metric.name] for _, runs in arms for run in runs])
    rows = []
    for summary, runs in arms:
        quartiles = (summary.lower_quartile, summary.upper_quartile)
        low, high = (None if each is None else axis(each.value) for each in quartiles)
        rows.append(
            StripRow(
                summary.arm,
                _points(metric, axis, runs),
                summary.arm in base,
                None if low is None or high is None else (low, high),
                None if summary.median is None else axis(summary.median.value),
            )
        )
    return Strip(
        metric.title,
        direction_text(metric.direction),
        f"{metric.title}: every run of each arm",
        tuple((axis(t), value_text(t, metric)) for t in axis.ticks(_TICKS, _unit(metric, axis))),
        tuple(rows),
    )


def block_strip(report: Report, cell: ReportCell, pair: PairResults) -> Strip | None:
    """The primary metric's ratio in each block; none where it has no ratio."""
    comparison = next((c for c in pair.comparisons if c.criterion.primary), None)
    effect = comparison.effect if comparison else None
    if comparison is None or effect is None or effect.scale is not model.Scale.RATIO:
        return None
    metric = report.metric(comparison.metric)
    a, b = (
        {r.block: r.values[metric.name] for r in report.runs_of(cell.name, arm) if _has(r, metric)}
        for arm in (pair.a, pair.b)
    )
    both = sorted(block for block in a.keys() & b.keys() if block is not None)
    if comparison.design is not Design.PAIRED or not both:
        return None
    ratios = [b[block] / a[block] for block in both]
    low, high = min(*ratios, effect.margin_low), max(*ratios, effect.margin_high)
    axis = Scale(low * 0.97, high * 1.03, _NAME_PX, _NAME_PX + _STRIP_PX - 16, logarithmic=True)
    labels = [
        f"block {block}: {ratio_text(ratio)}" for block, ratio in zip(both, ratios, strict=True)
    ]
    title = f"{metric.title}: B against A in each block"
    return Strip(
        title,
        "",
        title,
        tuple((axis(tick), ratio_text(tick)) for tick in sorted({1.0, *axis.ticks(_TICKS)})),
        (StripRow(_BY_BLOCK, _spread_out([axis(ratio) for ratio in ratios], labels)),),
        _band(effect, axis),
        axis(1.0),
    )


def _strip_axis(values: Sequence[float]) -> Scale:
    low, high = min(values), max(values)
    log = low > 0 and high / low >= _LOG_FROM
    pad = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    if log:
        low, high = low / 1.1, high * 1.1
    else:
        low, high = (0.0 if 0 <= low < pad else low - pad), high + pad
    return Scale(low, high, _NAME_PX + 12, _NAME_PX + _STRIP_PX - 24, log)


def _unit(metric: ReportMetric, axis: Scale) -> float:
    """In what values are given: bytes by powers of 1024."""
    if metric.unit not in (Unit.BYTES, Unit.BYTES_PER_S) or axis.high < 1:
        return 1.0
    return 1024.0 ** math.floor(math.log(axis.high, 1024))


def _points(metric: ReportMetric, axis: Scale, runs: Sequence[ReportRun]) -> tuple[Point, ...]:
    ordered = sorted(runs, key=lambda run: run.values[metric.name])
    limits = [metric.name in run.censored for run in ordered]
    labels = [
        ("more than " if limit else "")
        + value_text(run.values[metric.name], metric)
        + ("" if run.block is None else f", block {run.block}")
        + f", run {run.run}"
        for run, limit in zip(ordered, limits, strict=True)
    ]
    return _spread_out([axis(run.values[metric.name]) for run in ordered], labels, limits)


def _spread_out(
    places: Sequence[float], labels: Sequence[str], limits: Sequence[bool] = ()
) -> tuple[Point, ...]:
    """Points that do not cover each other as long as there is room."""
    lifts = (0.0, -8.0, 8.0, -14.0, 14.0, -4.0, 4.0, -11.0, 11.0)
    points: list[Point] = []
    for x, label, limit in zip(places, labels, limits or [False] * len(places), strict=True):
        free = (
            lift for lift in lifts if all(math.hypot(x - p.x, lift - p.lift) >= 7.5 for p in points)
        )
        points.append(Point(x, next(free, lifts[len(points) % len(lifts)]), label, limit))
    return tuple(points)
