"""The rules by which a comparison gets its verdict, and the sentence that goes with it.

In this order; the first that applies decides:

1. An arm without values, with more than :data:`MOST_MISSING` of its runs without one, or with
   fewer than :data:`~vmtune.stats.verdict.LEAST_PAIRED` blocks
   (:data:`~vmtune.stats.verdict.LEAST_UNPAIRED` runs of each arm, unpaired): insufficient data.
2. An arm of which more than half of the values are censored: by the logrank test and, where no
   measured value is above a limit, by the share of runs that converged, each at half of the error
   rate (Bonferroni). Never equivalent.
3. By the interval and the margin (:mod:`~vmtune.stats.verdict`). For a share, better and worse
   need Boschloo's test too, because Newcombe's interval is not exact.
4. One of many metrics is better or worse only if its adjusted p is at most 0.05 too.

A metric of which neither direction is better gets no verdict, unless there is insufficient data.
"""

from __future__ import annotations

from dataclasses import replace

from vmtune.stats.model import (
    Comparison,
    Design,
    Direction,
    Effect,
    Scale,
    Summary,
    Verdict,
)
from vmtune.stats.verdict import (
    LEAST_PAIRED,
    LEAST_UNPAIRED,
    Place,
    extent,
    margin_words,
    more_blocks,
    place_of,
    verdict_of,
)

ERROR_RATE = 0.05
"""How often a test may find a difference where there is none."""
MOST_MISSING = 0.2
"""The share of an arm's runs that may lack a value: those that are left may be the easy ones."""
MOSTLY = 0.5
"""An arm of whose values more than this share is censored has no median to compare."""


def judge(comparison: Comparison) -> Comparison:
    """The same with its verdict, reason and the blocks it still needs."""
    lack = _lack(comparison)
    effect = comparison.effect
    if lack or effect is None:
        return replace(comparison, verdict=Verdict.INSUFFICIENT_DATA, reason=lack)
    if any(_mostly_censored(arm) for arm in (comparison.a, comparison.b)):
        return _by_survival(comparison)
    place = place_of(effect)
    found = extent(effect, comparison.criterion.unit)
    doubt = _doubt(comparison) if place in (Place.BELOW, Place.ABOVE) else ""
    if doubt:
        reason = f"{comparison.b.arm} is {found}, but {doubt}"
        return replace(comparison, verdict=Verdict.INCONCLUSIVE, reason=reason)
    direction = comparison.criterion.direction
    verdict = verdict_of(place, direction)
    if direction is Direction.NONE:
        reason = f"{comparison.b.arm} is {found}: neither direction is better"
        return replace(comparison, verdict=verdict, reason=reason)
    more = more_blocks(effect, comparison.size) if place is Place.ACROSS else None
    is_ = "may be" if place is Place.ACROSS else "is"
    reason = f"{comparison.b.arm} {is_} {found}{_against(comparison, effect, place, more)}"
    return replace(comparison, verdict=verdict, reason=reason, more_blocks=more)


def withhold(comparison: Comparison, reason: str) -> Comparison:
    """The same without a verdict, because the runs are not comparable in the first place."""
    return replace(comparison, verdict=None, reason=reason, more_blocks=None)


def _lack(comparison: Comparison) -> str:
    """What is missing for any verdict; empty if nothing is."""
    arms = (comparison.a, comparison.b)
    for arm in arms:
        if arm.missing == arm.runs:
            return f"{arm.arm} has no value" + (f" in {arm.runs} runs" if arm.runs else "")
    for arm in arms:
        if arm.missing > MOST_MISSING * arm.runs:
            return (
                f"{arm.missing} of {arm.runs} runs of {arm.arm} have no value; a verdict needs "
                f"at least {1 - MOST_MISSING:.0%} of them"
            ).replace("%", " %")
    if comparison.design is Design.PAIRED and comparison.size < LEAST_PAIRED:
        return (
            f"{comparison.size} blocks have a value of both arms; a verdict needs at least "
            f"{LEAST_PAIRED}"
        )
    if comparison.size < LEAST_UNPAIRED:
        fewest = min(arms, key=lambda arm: arm.runs - arm.missing)
        return (
            f"{fewest.arm} has {comparison.size} values; a verdict needs at least "
            f"{LEAST_UNPAIRED} of each arm"
        )
    return ""


def _mostly_censored(arm: Summary) -> bool:
    return arm.censored > MOSTLY * (arm.censored + arm.measured)


def _by_survival(comparison: Comparison) -> Comparison:
    """By how soon runs ended and how many did, since there is no median to compare."""
    survival, converged = comparison.survival, comparison.converged
    assert survival is not None and converged is not None
    lower = higher = False
    if survival.p <= ERROR_RATE / 2:
        lower, higher = bool(survival.b_sooner), not survival.b_sooner
    p_values = f"logrank p = {survival.p:.2g}"
    if survival.limits_highest:
        p_values += f", shares p = {converged.p:.2g}"
        if converged.p <= ERROR_RATE / 2:
            lower, higher = lower or converged.difference > 0, higher or converged.difference < 0
    place = Place.ACROSS if lower == higher else Place.BELOW if lower else Place.ABOVE
    reason = (
        f"{converged.b_count} of {converged.b_runs} runs of {comparison.b.arm} ended within their "
        f"limit, and {converged.a_count} of {converged.a_runs} of {comparison.a.arm} ({p_values})"
    )
    doubt = _doubt(comparison) if place is not Place.ACROSS else ""
    if doubt:
        place, reason = Place.ACROSS, f"{reason}, but {doubt}"
    verdict = verdict_of(place, comparison.criterion.direction)
    return replace(comparison, verdict=verdict, reason=reason)


def _doubt(comparison: Comparison) -> str:
    """Why an interval beyond the margin is not enough; empty if it is."""
    test, effect = comparison.test, comparison.effect
    if test and effect and effect.scale is Scale.SHARE and test.p > ERROR_RATE:
        return f"the exact test does not bear that out (p = {test.p:.2g})"
    if comparison.adjusted_p is not None and comparison.adjusted_p > ERROR_RATE:
        return (
            "among so many metrics that comes by chance too "
            f"(adjusted p = {comparison.adjusted_p:.2g})"
        )
    return ""


def _against(comparison: Comparison, effect: Effect, place: Place, more: int | None) -> str:
    margin = margin_words(effect, comparison.criterion.unit)
    if place is Place.WITHIN:
        return f": within the margin of {margin}"
    if place is not Place.ACROSS:
        return f": beyond the margin of {margin}"
    kind = "blocks" if comparison.design is Design.PAIRED else "runs of each arm"
    if more is None:
        return f": not settled against the margin of {margin}, and more {kind} may not settle it"
    return f": about {more} more {kind} would settle it against the margin of {margin}"
