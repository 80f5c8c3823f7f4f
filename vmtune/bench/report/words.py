"""Values, effects and verdicts of a report as people read them: once, for every form of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from vmtune.bench.report.report import Report, ReportMetric
from vmtune.stats.model import Bound, Comparison, Direction, Effect, Figure, Scale, Summary, Verdict
from vmtune.units import LEAST_SHOWN, Unit, approximate, distinct_number, share_text

_BOUNDS = {Bound.EXACT: "", Bound.AT_LEAST: ">= ", Bound.AT_MOST: "<= ", Bound.UNKNOWN: "~ "}
_NONE = "-"
_LIMIT_OF_P = 0.05


@dataclass(frozen=True, slots=True)
class ResultText:
    """A comparison of two arms in one metric, in words and rounded figures; ``-`` where there is
    none.

    :param title: the metric's.
    :param medians: A's and B's, or how many of how many.
    :param quartiles: likewise; empty for shares.
    :param runs: of A and of B: ``10``; ``8 of 10`` where some have no value.
    :param rank: which difference the interval begins with.
    :param level: of the interval.
    :param better_in: the share of blocks, or of pairs of runs, in which B is better.
    :param of_medians: B's median by A's (their difference, without a ratio), with its interval.
    :param effect: B against A: ``-96 %``, or the difference where there is no ratio.
    :param times: B by A: ``0.036 times``; empty without a ratio.
    :param grey: it claims something that may be noise.
    """

    title: str
    primary: bool
    medians: tuple[str, ...]
    quartiles: tuple[str, ...]
    runs: tuple[str, ...]
    effect: str
    times: str
    interval: str
    verdict: str
    reason: str
    rank: str
    level: str
    test: str
    p: str
    adjusted_p: str
    delta: str
    better_in: str
    noise_floor: str
    of_medians: str
    grey: bool

    @property
    def name(self) -> str:
        """The title, with a mark for the primary metric."""
        return self.title + (" (primary)" if self.primary else "")


def result_text(report: Report, comparison: Comparison) -> ResultText:
    """*comparison*, which is part of *report*. The reason why a verdict is withheld is the
    report's: it is empty here."""
    metric = report.metric(comparison.metric)
    effect, test, delta = comparison.effect, comparison.test, comparison.cliffs_delta
    a, b, shares = comparison.a, comparison.b, comparison.shares
    grey = bool(
        comparison.verdict in (Verdict.BETTER, Verdict.WORSE) and comparison.below_noise_floor
    )
    return ResultText(
        title=metric.title,
        primary=comparison.criterion.primary,
        medians=(figure_text(a.median, metric), figure_text(b.median, metric))
        if shares is None
        else (f"{shares.a_count} of {shares.a_runs}", f"{shares.b_count} of {shares.b_runs}"),
        quartiles=(quartiles_text(a, metric), quartiles_text(b, metric))
        if shares is None
        else ("", ""),
        runs=(runs_text(a), runs_text(b)),
        effect=effect_text(effect, metric),
        times=times_text(effect),
        interval=interval_text(effect, metric),
        verdict=_verdict_text(comparison, grey),
        reason="" if report.withheld else comparison.reason,
        rank=f"{effect.rank} of {effect.differences}" if effect and effect.rank > 0 else _NONE,
        level=f"{100 * effect.level:.1f} %" if effect and effect.level else _NONE,
        test=test.name if test else _NONE,
        p=p_text(test.p if test else None),
        adjusted_p=p_text(comparison.adjusted_p),
        delta=_NONE if delta is None else f"{round(delta, 2) + 0.0:+.2f}",
        better_in=_NONE if comparison.better_share is None else share_text(comparison.better_share),
        noise_floor=_noise_floor_text(comparison, metric),
        of_medians=_of_medians_text(comparison, metric),
        grey=grey,
    )


def result_texts(report: Report) -> tuple[tuple[ResultText, ...], ...]:
    """The words of every comparison: of each cell, in the order of its comparisons."""
    return tuple(
        tuple(result_text(report, each) for each in cell.comparisons) for cell in report.cells
    )


def value_text(value: float, metric: ReportMetric) -> str:
    """A value with its unit, to three figures."""
    return approximate(value, metric.unit)


def figure_text(figure: Figure | None, metric: ReportMetric) -> str:
    """Likewise; ``> 300,000 ms`` where only that is known, ``-`` where nothing is."""
    if figure is None:
        return _NONE
    return ("> " if figure.above else "") + value_text(figure.value, metric)


def quartiles_text(summary: Summary, metric: ReportMetric) -> str:
    """``240 to 310 ms``."""
    if summary.median is None:
        return _NONE
    return _span(
        *(figure_text(each, metric) for each in (summary.lower_quartile, summary.upper_quartile))
    )


def _span(low: str, high: str) -> str:
    """``240 to 310 ms``: the unit once, where both have the same."""
    number, _, unit = low.partition(" ")
    same = unit and not low.startswith(">") and high.partition(" ")[2] == unit
    return f"{number if same else low} to {high}"


def runs_text(summary: Summary) -> str:
    """``10``; ``8 of 10`` where some have no value; with how many did not converge."""
    there = summary.measured + summary.censored
    text = str(there) if not summary.missing else f"{there} of {summary.runs}"
    return text + (f", {summary.censored} at the limit" if summary.censored else "")


def effect_text(effect: Effect | None, metric: ReportMetric) -> str:
    """``-26 %``; ``+12 ms``; ``+30 points``."""
    if effect is None:
        return _NONE
    (text,) = distinct_texts((effect.estimate,), effect.scale, metric.unit)
    return _BOUNDS[effect.bound] + text


def interval_text(effect: Effect | None, metric: ReportMetric) -> str:
    """``-32 to -15 %``; an end that there is none of is left open."""
    if effect is None or (effect.low is None and effect.high is None):
        return _NONE
    ends = [end for end in (effect.low, effect.high) if end is not None]
    texts = distinct_texts(ends, effect.scale, metric.unit)
    if len(texts) == 2:
        return _span(*texts)
    return f"{'up to' if effect.low is None else 'from'} {texts[0]}"


def times_text(effect: Effect | None) -> str:
    """``0.745 times``: B by A; empty where there is no ratio, or the effect is that already."""
    if effect is None or effect.scale is not Scale.RATIO or effect.estimate >= _TIMES_FROM:
        return ""
    value = effect.estimate
    if 0 < value < LEAST_SHOWN:
        return f"< {LEAST_SHOWN:g} times"
    return f"{_BOUNDS[effect.bound]}{value:.{2 if value < 0.1 else 3}g} times"


def effect_words(comparison: Comparison, metric: ReportMetric) -> str:
    """``-26 % (0.745 times), interval -32 to -15 %``; where there is no ratio, the difference."""
    effect = comparison.effect
    if effect is None:
        return "nothing to compare"
    times = times_text(effect)
    text = effect_text(effect, metric) + (f" ({times})" if times else "")
    ends = interval_text(effect, metric)
    return text if ends == _NONE else f"{text}, interval {ends}"


def ratio_text(ratio: float, more: int = 0) -> str:
    """How far a ratio is from 1: ``-96 %``, ``+4.8 %``; from ten times on ``12 times``.

    :param more: figures than usual.
    """
    if ratio >= _TIMES_FROM:
        return f"{ratio:,.{3 + more}g} times" if ratio < _MANY else f"{ratio:,.0f} times"
    if 0 < ratio < _LEAST_RATIO:
        return f"below {100 * (_LEAST_RATIO - 1):.2f} %"
    percent = 100 * (ratio - 1)
    decimals = (1 if abs(percent) < 10 or ratio < 0.01 else 0) + (1 if ratio < 0.001 else 0)
    text = f"{percent:+.{decimals + more}f}"
    return "0 %" if float(text) == 0 else f"{text} %"


_TIMES_FROM = 10.0
_MANY = 1000.0
_LEAST_RATIO = 0.0001


def _verdict_text(comparison: Comparison, grey: bool) -> str:
    """One word or two."""
    if comparison.verdict is None:
        neither = comparison.criterion.direction is Direction.NONE
        return "no direction" if neither else "withheld"
    return comparison.verdict.value + (", below the noise floor" if grey else "")


def _noise_floor_text(comparison: Comparison, metric: ReportMetric) -> str:
    """The effect below which the host's noise may be all of it, to either side."""
    if comparison.noise_floor is None or comparison.effect is None:
        return _NONE
    level, scale = comparison.noise_floor, comparison.effect.scale
    if scale is Scale.RATIO:
        return _span(*distinct_texts((1 / level, level), scale, metric.unit))
    return f"±{distinct_texts((level,), scale, metric.unit)[0].lstrip('+')}"


def _of_medians_text(comparison: Comparison, metric: ReportMetric) -> str:
    """``-26 % (-32 to -15 %)``."""
    medians, effect = comparison.medians, comparison.effect
    if medians is None or effect is None:
        return _NONE
    if medians.low is None or medians.high is None:
        return distinct_texts((medians.estimate,), effect.scale, metric.unit)[0]
    values = (medians.estimate, medians.low, medians.high)
    at, *ends = distinct_texts(values, effect.scale, metric.unit)
    return f"{at} ({_span(*ends)})"


def p_text(p: float | None) -> str:
    """``0.031``, ``< 0.0001``."""
    if p is None:
        return _NONE
    return "< 0.0001" if p < 0.0001 else distinct_number(p, _LIMIT_OF_P, 2)


def raw_text(value: float) -> str:
    """A value with all its figures and without its unit, to compute with."""
    return str(int(value)) if value == int(value) else repr(value)


def direction_text(direction: Direction) -> str:
    """Which way is better."""
    return "explains others" if direction is Direction.NONE else f"{direction.value} is better"


def distinct_texts(values: Sequence[float], scale: Scale, unit: Unit) -> list[str]:
    """Each on its scale, with as many figures as tell them apart, and from no difference."""
    known = [*values, 1.0 if scale is Scale.RATIO else 0.0]
    texts: list[str] = []
    for more in range(_MOST_FIGURES):
        texts = [_on_scale(value, scale, unit, more) for value in known]
        told = [
            float(text.removeprefix("below ").partition(" ")[0].replace(",", "")) for text in texts
        ]
        if all(
            told[one] != told[other]
            or texts[one].partition(" ")[2] != texts[other].partition(" ")[2]
            or math.isclose(known[one], known[other], rel_tol=_ALIKE)
            for one, other in combinations(range(len(known)), 2)
        ):
            break
    return texts[:-1]


_MOST_FIGURES = 5
_ALIKE = 1e-9


def _on_scale(value: float, scale: Scale, unit: Unit, more: int = 0) -> str:
    """:param more: figures than usual."""
    if scale is Scale.RATIO:
        return ratio_text(value, more)
    if scale is Scale.SHARE:
        return f"{100 * value:+.{more}f} points" if value else "0 points"
    if abs(value) < LEAST_SHOWN:
        value = 0.0
    sign = "+" if value > 0 else "-" if value < 0 else ""
    return sign + approximate(abs(value), unit, 3 + more)
