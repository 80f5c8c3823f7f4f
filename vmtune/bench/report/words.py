"""Values, effects and verdicts of a report as people read them: once, for every form of it."""

from __future__ import annotations

from vmtune.bench.report.report import Report, ReportMetric
from vmtune.stats.model import Bound, Comparison, Direction, Effect, Figure, Scale, Summary, Verdict
from vmtune.units import approximate

_BOUNDS = {Bound.EXACT: "", Bound.AT_LEAST: ">= ", Bound.AT_MOST: "<= ", Bound.UNKNOWN: "~ "}
_NONE = "-"


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


def arm_texts(comparison: Comparison, metric: ReportMetric) -> tuple[str, str]:
    """A's and B's median, or how many of how many."""
    shares = comparison.shares
    if shares is None:
        return figure_text(comparison.a.median, metric), figure_text(comparison.b.median, metric)
    return f"{shares.a_count} of {shares.a_runs}", f"{shares.b_count} of {shares.b_runs}"


def quartile_texts(comparison: Comparison, metric: ReportMetric) -> tuple[str, str]:
    """A's and B's quartiles; empty for shares."""
    if comparison.shares is not None:
        return "", ""
    return quartiles_text(comparison.a, metric), quartiles_text(comparison.b, metric)


def runs_text(summary: Summary) -> str:
    """``10``; ``8 of 10`` where some have no value; with how many did not converge."""
    there = summary.measured + summary.censored
    text = str(there) if not summary.missing else f"{there} of {summary.runs}"
    return text + (f", {summary.censored} at the limit" if summary.censored else "")


def effect_text(effect: Effect | None, metric: ReportMetric) -> str:
    """``0.745``; ``+12 ms``; ``+30 points``."""
    if effect is None:
        return _NONE
    return _BOUNDS[effect.bound] + _on_scale(effect.estimate, effect.scale, metric)


def interval_text(effect: Effect | None, metric: ReportMetric) -> str:
    """``0.685 to 0.850``; an end that there is none of is left open."""
    if effect is None or (effect.low is None and effect.high is None):
        return _NONE
    if effect.low is None:
        return f"up to {_on_scale(effect.high or 0, effect.scale, metric)}"
    low = _on_scale(effect.low, effect.scale, metric)
    if effect.high is None:
        return f"from {low}"
    return _span(low, _on_scale(effect.high, effect.scale, metric))


def effect_words(comparison: Comparison, metric: ReportMetric) -> str:
    """``B/A 0.745 (0.685 to 0.850)``; where there is no ratio, ``B - A`` and the difference."""
    effect = comparison.effect
    if effect is None:
        return "nothing to compare"
    what = "B/A" if effect.scale is Scale.RATIO else "B - A"
    return f"{what} {effect_text(effect, metric)} ({interval_text(effect, metric)})"


def reason_text(report: Report, comparison: Comparison) -> str:
    """Why that verdict; empty where all are withheld, which is told once for all."""
    return "" if report.withheld else comparison.reason


def verdict_text(comparison: Comparison) -> str:
    """One word or two. A claim below the noise floor is marked."""
    if comparison.verdict is None:
        neither = comparison.criterion.direction is Direction.NONE
        return "no direction" if neither else "withheld"
    claimed = comparison.verdict in (Verdict.BETTER, Verdict.WORSE)
    doubtful = claimed and comparison.below_noise_floor
    return comparison.verdict.value + (", below the noise floor" if doubtful else "")


def floor_text(comparison: Comparison, metric: ReportMetric) -> str:
    """The effect below which the host's noise may be all of it, to either side."""
    if comparison.noise_floor is None or comparison.effect is None:
        return _NONE
    level, scale = comparison.noise_floor, comparison.effect.scale
    if scale is Scale.RATIO:
        return f"{1 / level:.3f} to {level:.3f}"
    return f"±{_on_scale(level, scale, metric).lstrip('+')}"


def p_text(p: float) -> str:
    """``0.031``, ``< 0.0001``."""
    return "< 0.0001" if p < 0.0001 else f"{p:.2g}"


def share_text(share: float | None) -> str:
    """``90 %``."""
    return _NONE if share is None else f"{100 * share:.0f} %"


def raw_text(value: float) -> str:
    """A value with all its figures and without its unit, to compute with."""
    return str(int(value)) if value == int(value) else repr(value)


def direction_text(direction: Direction) -> str:
    """Which way is better."""
    return "explains others" if direction is Direction.NONE else f"{direction.value} is better"


def _on_scale(value: float, scale: Scale, metric: ReportMetric) -> str:
    if scale is Scale.RATIO:
        return (
            f"{value:.3f}" if value < 10 else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"
        )
    if scale is Scale.SHARE:
        return f"{100 * value:+.0f} points"
    sign = "+" if value > 0 else "-" if value < 0 else ""
    return sign + value_text(abs(value), metric)
