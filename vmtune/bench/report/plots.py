"""The plots of the HTML report, as SVG: intervals, strips of all runs, ratios by block.

No scripts: what a point is, its own title tells. Colours come from the page's style, so that light
and dark fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from vmtune.bench.report.report import ReportMetric, ReportRun
from vmtune.bench.report.words import value_text
from vmtune.stats.model import Comparison, Effect, Scale, Summary
from vmtune.units import Unit

_WIDEST_RATIO = 8.0  # what lies beyond is shown by an arrow
_LOG_FROM = 20.0  # from this ratio of largest to smallest on, strips are logarithmic
_NAME_PX, _STRIP_PX, _ROW_PX, _AXIS_PX = 120, 440, 44, 26
_PLOT_PX, _PLOT_HIGH_PX = 180, 24
PLOT_ENDS_PX = (8.0, _PLOT_PX - 8.0)


@dataclass(frozen=True, slots=True)
class Axis:
    """From values to pixels.

    :param low: the value at its left end; on a logarithmic axis above 0.
    """

    low: float
    high: float
    left_px: float
    right_px: float
    log: bool = False

    def at(self, value: float) -> float:
        """Where *value* is, within the axis."""
        line: Callable[[float], float] = math.log if self.log else float
        if self.log and value <= 0:
            return self.left_px
        share = (line(value) - line(self.low)) / (line(self.high) - line(self.low))
        return self.left_px + min(1.0, max(0.0, share)) * (self.right_px - self.left_px)

    def ticks(self, unit: float = 1.0) -> list[float]:
        """Some three to seven values along it that are round in *unit*."""
        if self.log and self.high > _LOG_FROM / 2 * self.low:
            found = [
                factor * 10.0**power
                for power in range(
                    math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1
                )
                for factor in (1, 2, 5)
            ]
            inside = [tick for tick in found if self.low <= tick <= self.high]
            return inside[:: max(1, math.ceil(len(inside) / 6))]
        step = _round_step((self.high - self.low) / 4 / unit) * unit
        first = math.ceil(self.low / step)
        return [n * step for n in range(first, math.floor(self.high / step) + 1)]


def _round_step(raw: float) -> float:
    power = 10.0 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))


def ratio_axis(comparisons: Sequence[Comparison], left_px: float, right_px: float) -> Axis:
    """One axis for all effects that are ratios, the same to both sides of 1."""
    ends = [
        end
        for comparison in comparisons
        if comparison.effect and comparison.effect.scale is Scale.RATIO
        for effect in [comparison.effect]
        for end in (effect.estimate, effect.low, effect.high, effect.margin_high)
        if end
    ]
    widest = max((max(end, 1 / end) for end in ends), default=1.1)
    widest = min(_WIDEST_RATIO, max(1.1, widest) ** 1.08)
    return Axis(1 / widest, widest, left_px, right_px, log=True)


def own_axis(effect: Effect, left_px: float, right_px: float) -> Axis:
    """An axis for an effect that is no ratio, the same to both sides of 0."""
    ends = (effect.estimate, effect.low or 0, effect.high or 0, effect.margin_high)
    widest = max(map(abs, ends)) * 1.15 or 1.0
    return Axis(-widest, widest, left_px, right_px)


def axis_svg(axis: Axis) -> str:
    """The head of the column of intervals: what lies where."""
    labels = "".join(
        f'<text x="{axis.at(value):.1f}" y="12" text-anchor="{anchor}">{escape(text)}</text>'
        for value, text, anchor in (
            (axis.low, f"{axis.low:.2g}", "start"),
            (1.0, "1", "middle"),
            (axis.high, f"{axis.high:.2g}", "end"),
        )
    )
    return _svg(_PLOT_PX, 16, "B/A from left to right", labels)


def interval_svg(comparison: Comparison, axis: Axis, words: str) -> str:
    """An effect with its interval and the margin; arrows where it goes on beyond the axis."""
    effect = comparison.effect
    if effect is None:
        return ""
    if effect.scale is not Scale.RATIO:
        axis = own_axis(effect, axis.left_px, axis.right_px)
    middle = _PLOT_HIGH_PX / 2
    band, band_end = axis.at(effect.margin_low), axis.at(effect.margin_high)
    none = axis.at(1.0 if effect.scale is Scale.RATIO else 0.0)
    parts = [
        f'<rect class="band" x="{band:.1f}" y="0" width="{max(1.0, band_end - band):.1f}" '
        f'height="{_PLOT_HIGH_PX}"/>',
        f'<line class="zero" x1="{none:.1f}" x2="{none:.1f}" y1="0" y2="{_PLOT_HIGH_PX}"/>',
    ]
    if effect.low is not None or effect.high is not None:
        parts += _reach(effect, axis, middle)
    parts.append(f'<circle class="dot" cx="{axis.at(effect.estimate):.1f}" cy="{middle}" r="4.5"/>')
    return _svg(_PLOT_PX, _PLOT_HIGH_PX, words, "".join(parts))


def _reach(effect: Effect, axis: Axis, middle: float) -> Iterator[str]:
    """The interval's line, each end closed or open."""
    low = axis.low if effect.low is None else effect.low
    high = axis.high if effect.high is None else effect.high
    x1, x2 = axis.at(low), axis.at(high)
    yield f'<line class="reach" x1="{x1:.1f}" x2="{x2:.1f}" y1="{middle}" y2="{middle}"/>'
    for x, way, beyond in (
        (x1, 1, effect.low is None or low < axis.low),
        (x2, -1, effect.high is None or high > axis.high),
    ):
        tip = f"M{x + 5 * way:.1f} {middle - 5}L{x:.1f} {middle}L{x + 5 * way:.1f} {middle + 5}"
        bar = f"M{x:.1f} {middle - 5}V{middle + 5}"
        yield f'<path class="reach" d="{tip if beyond else bar}"/>'


def strip_svg(
    metric: ReportMetric, arms: Sequence[tuple[Summary, Sequence[ReportRun]]], base: set[str]
) -> str:
    """Every run of each arm as a point, with median and quartiles; ``>`` is a run at its limit.

    :param base: the arms that others are held against, drawn in grey.
    """
    values = [run.values[metric.name] for _, runs in arms for run in _shown(runs, metric)]
    if not values:
        return ""
    axis = _strip_axis(values)
    height = _ROW_PX * len(arms)
    parts = [
        f'<line class="grid" x1="{axis.at(tick):.1f}" x2="{axis.at(tick):.1f}" y1="0" '
        f'y2="{height}"/><text x="{axis.at(tick):.1f}" y="{height + 18}" text-anchor="middle">'
        f"{escape(value_text(tick, metric))}</text>"
        for tick in axis.ticks(_unit(metric, axis))
    ]
    for row, (summary, runs) in enumerate(arms):
        kind = ' class="base"' if summary.arm in base else ""
        middle = row * _ROW_PX + _ROW_PX / 2
        parts.append(
            f'<text class="name" x="0" y="{middle + 4:.1f}">{escape(_short(summary.arm))}'
            f"<title>{escape(summary.arm)}</title></text><g{kind}>"
        )
        parts += _summary_marks(summary, axis, middle)
        parts += _points(_shown(runs, metric), metric, axis, middle)
        parts.append("</g>")
    words = f"{metric.title}: every run of each arm"
    return _svg(_NAME_PX + _STRIP_PX, height + _AXIS_PX, words, "".join(parts))


def blocks_svg(comparison: Comparison, ratios: Sequence[tuple[int, float]], axis: Axis) -> str:
    """The ratio B/A in each block, about the margin."""
    effect = comparison.effect
    if effect is None or not ratios:
        return ""
    height = _ROW_PX
    band, band_end = axis.at(effect.margin_low), axis.at(effect.margin_high)
    parts = [
        f'<rect class="band" x="{band:.1f}" y="0" width="{band_end - band:.1f}" height="{height}"/>'
    ]
    for tick in {1.0, *axis.ticks()}:
        line = "zero" if tick == 1 else "grid"
        parts.append(
            f'<line class="{line}" x1="{axis.at(tick):.1f}" x2="{axis.at(tick):.1f}" y1="0" '
            f'y2="{height}"/><text x="{axis.at(tick):.1f}" y="{height + 18}" '
            f'text-anchor="middle">{tick:.3g}</text>'
        )
    parts.append(f'<text class="name" x="0" y="{height / 2 + 4}">B/A by block</text>')
    spots = _swarm([axis.at(ratio) for _, ratio in ratios])
    for (block, ratio), (x, lift) in zip(ratios, spots, strict=True):
        parts.append(
            f'<circle class="dot" cx="{x:.1f}" cy="{height / 2 + lift:.1f}" r="4">'
            f"<title>block {block}: {ratio:.3f}</title></circle>"
        )
    return _svg(_NAME_PX + _STRIP_PX, height + _AXIS_PX, "B/A in each block", "".join(parts))


def blocks_axis(ratios: Sequence[float], margin: float) -> Axis:
    """The axis of :func:`blocks_svg`."""
    low = min(*ratios, 1 / margin) * 0.97
    high = max(*ratios, margin) * 1.03
    return Axis(low, high, _NAME_PX, _NAME_PX + _STRIP_PX - 16, log=True)


def _shown(runs: Sequence[ReportRun], metric: ReportMetric) -> list[ReportRun]:
    return [run for run in runs if run.counts and metric.name in run.values]


def _strip_axis(values: Sequence[float]) -> Axis:
    low, high = min(values), max(values)
    log = low > 0 and high / low >= _LOG_FROM
    pad = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    if log:
        low, high = low / 1.1, high * 1.1
    else:
        low, high = (0.0 if 0 <= low < pad else low - pad), high + pad
    return Axis(low, high, _NAME_PX + 12, _NAME_PX + _STRIP_PX - 24, log)


def _unit(metric: ReportMetric, axis: Axis) -> float:
    """In what values are told: bytes by powers of 1024."""
    if metric.unit not in (Unit.BYTES, Unit.BYTES_PER_S) or axis.high < 1:
        return 1.0
    return 1024.0 ** math.floor(math.log(axis.high, 1024))


def _summary_marks(summary: Summary, axis: Axis, middle: float) -> Iterator[str]:
    if summary.median is None or summary.lower_quartile is None or summary.upper_quartile is None:
        return
    x1, x2 = axis.at(summary.lower_quartile.value), axis.at(summary.upper_quartile.value)
    yield f'<line class="box" x1="{x1:.1f}" x2="{x2:.1f}" y1="{middle}" y2="{middle}"/>'
    x = axis.at(summary.median.value)
    yield f'<line class="middle" x1="{x:.1f}" x2="{x:.1f}" y1="{middle - 15}" y2="{middle + 15}"/>'


def _points(
    runs: Sequence[ReportRun], metric: ReportMetric, axis: Axis, middle: float
) -> Iterator[str]:
    ordered = sorted(runs, key=lambda run: run.values[metric.name])
    spots = _swarm([axis.at(run.values[metric.name]) for run in ordered])
    for run, (x, lift) in zip(ordered, spots, strict=True):
        y = middle + lift
        value = value_text(run.values[metric.name], metric)
        limit = metric.name in run.censored
        block = f", block {run.block}" if run.block is not None else ""
        words = escape(f"{'more than ' if limit else ''}{value}{block}, run {run.run}")
        if limit:
            path = f"M{x - 3:.1f} {y - 5:.1f}L{x + 5:.1f} {y:.1f}L{x - 3:.1f} {y + 5:.1f}"
            yield f'<path class="limit" d="{path}"><title>{words}</title></path>'
        else:
            yield (
                f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4">'
                f"<title>{words}</title></circle>"
            )


def _swarm(places: Sequence[float]) -> list[tuple[float, float]]:
    """Each point with how far it is moved up or down, so that points do not cover each other
    as long as there is room."""
    taken: list[tuple[float, float]] = []
    for x in places:
        lifts = (0.0, -8.0, 8.0, -14.0, 14.0, -4.0, 4.0, -11.0, 11.0)
        free = (lift for lift in lifts if all(math.hypot(x - u, lift - v) >= 7.5 for u, v in taken))
        taken.append((x, next(free, lifts[len(taken) % len(lifts)])))
    return taken


def _short(name: str) -> str:
    return name if len(name) <= 18 else name[:17] + "\u2026"


def _svg(width: float, height: float, words: str, inside: str) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'role="img" aria-label="{escape(words)}">{inside}</svg>'
    )
