"""The rules by which a comparison gets its verdict, and the sentence that goes with it.

In this order; the first that applies decides:

1. A rate over whole runs, where the arms do not succeed equally often: no verdict.
2. An arm without values, with more than :data:`MAX_MISSING` of its runs without one, or with
   fewer than :data:`~vmtune.stats.verdict.LEAST_PAIRED` blocks
   (:data:`~vmtune.stats.verdict.LEAST_UNPAIRED` runs of each arm, unpaired): insufficient data.
   Runs that did not succeed are not among them: they count as the worst
   (:mod:`~vmtune.stats.outcomes`).
3. An arm of which more than half of the values are censored: by the logrank test and, where no
   measured value is above a limit, by the share of runs that converged, each at half of the error
   rate (Bonferroni). Never equivalent.
4. By the interval and the margin (:mod:`~vmtune.stats.verdict`). For a share, better and worse
   need Boschloo's test too, because Newcombe's interval is not exact.
   In blocks the sign test must bear it out too, at 5 % to that side; without blocks, the medians
   must be beyond the margin (:mod:`~vmtune.stats.medians`).
5. One of many metrics is better or worse only if the p of that claim, adjusted for how many they
   are, is at most 0.05 too.
6. Arms without blocks whose runs did not take turns are confounded with time
   (:mod:`~vmtune.stats.turns`).
7. No metric makes an arm better that succeeds less often (Boschloo's test, 5 %).

A metric of which neither direction is better gets no verdict, unless there is insufficient data.
"""

from __future__ import annotations

import math
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
    MarginPosition,
    blocks_needed,
    extent,
    margin_words,
    position_of,
    verdict_of,
)
from vmtune.units import distinct_number

ERROR_RATE = 0.05
"""How often a test may find a difference where there is none."""
MAX_MISSING = 0.2
"""The share of an arm's runs that may lack a value: those that are left may be the easy ones."""
MOSTLY = 0.5
"""An arm of whose values more than this share is censored has no median to compare."""


def judge(comparison: Comparison) -> Comparison:
    """The same with its verdict, reason and the blocks it still needs."""
    uneven = _uneven(comparison)
    if uneven:
        return withhold(comparison, uneven)
    lack = _lack(comparison)
    effect = comparison.effect
    if lack or effect is None:
        return replace(comparison, verdict=Verdict.INSUFFICIENT_DATA, reason=lack)
    if by_survival(comparison):
        return _in_time(_by_survival(comparison))
    position = position_of(effect)
    found = extent(effect, comparison.criterion.unit)
    doubt = _doubt(comparison, position)
    if doubt:
        reason = f"{comparison.b.arm} is {found}, but {doubt}"
        return replace(comparison, verdict=Verdict.INCONCLUSIVE, reason=reason)
    direction = comparison.criterion.direction
    verdict = verdict_of(position, direction)
    if direction is Direction.NONE:
        reason = f"{comparison.b.arm} is {found}: neither direction is better"
        return replace(comparison, verdict=verdict, reason=reason)
    across = position is MarginPosition.ACROSS
    if across and comparison.adjusted_p is not None and not comparison.criterion.primary:
        reason = f"{comparison.b.arm} may be {found}: {_too_few(comparison)}"
        return replace(comparison, verdict=verdict, reason=reason, blocks_needed=None)
    needed = blocks_needed(effect, comparison.size) if across else None
    is_ = "may be" if across else "is"
    reason = f"{comparison.b.arm} {is_} {found}{_against(comparison, effect, position, needed)}"
    return _in_time(replace(comparison, verdict=verdict, reason=reason, blocks_needed=needed))


def by_survival(comparison: Comparison) -> bool:
    """An arm has no median to compare: it is judged by how soon its runs ended, and how many."""
    directed = comparison.criterion.direction is not Direction.NONE
    return any(_mostly_censored(arm, directed) for arm in (comparison.a, comparison.b))


def _in_time(comparison: Comparison) -> Comparison:
    """A settled one of arms that did not take turns is confounded with time."""
    settled = (Verdict.BETTER, Verdict.WORSE, Verdict.EQUIVALENT)
    if comparison.in_turns is not False or comparison.verdict not in settled:
        return comparison
    reason = (
        f"{comparison.reason}; but the arms did not take turns, or it is not known when each run "
        "was made, so the machine may have changed instead. Repeat it as a campaign of both arms"
    )
    return replace(comparison, verdict=Verdict.CONFOUNDED, reason=reason, blocks_needed=None)


def withhold(comparison: Comparison, reason: str) -> Comparison:
    """The same without a verdict, because the runs are not comparable in the first position."""
    return replace(comparison, verdict=None, reason=reason, blocks_needed=None)


def veil(comparison: Comparison, reason: str) -> Comparison:
    """The arms alone, side by side: no effect, no interval, no test, no verdict.

    For runs of which more are to come: what is seen before the last can decide whether it is the
    last.
    """
    return Comparison(
        criterion=comparison.criterion,
        a=comparison.a,
        b=comparison.b,
        design=comparison.design,
        size=comparison.size,
        reason=reason,
    )


def _lack(comparison: Comparison) -> str:
    """What is missing for any verdict; empty if nothing is."""
    arms = (comparison.a, comparison.b)
    worst = comparison.effect is not None and comparison.criterion.direction is not Direction.NONE
    missing = [arm.missing - (arm.failed if worst else 0) for arm in arms]
    for arm, lost in zip(arms, missing, strict=True):
        if lost == arm.runs:
            return f"{arm.arm} has no value" + (f" in {arm.runs} runs" if arm.runs else "")
    for arm, lost in zip(arms, missing, strict=True):
        if lost > MAX_MISSING * arm.runs:
            return (
                f"{lost} of {arm.runs} runs of {arm.arm} have no value; a verdict needs "
                f"at least {1 - MAX_MISSING:.0%} of them"
            ).replace("%", " %")
    if comparison.design is Design.PAIRED and comparison.size < LEAST_PAIRED:
        return (
            f"{comparison.size} blocks have a value of both arms; a verdict needs at least "
            f"{LEAST_PAIRED}"
        )
    if comparison.size < LEAST_UNPAIRED:
        fewest, _ = min(zip(arms, missing, strict=True), key=lambda each: each[0].runs - each[1])
        return (
            f"{fewest.arm} has {comparison.size} values; a verdict needs at least "
            f"{LEAST_UNPAIRED} of each arm"
        )
    return ""


def _uneven(comparison: Comparison) -> str:
    """Why a rate over whole runs says nothing; empty if it does."""
    shares = comparison.succeeded
    if not comparison.criterion.needs_success or shares is None or not shares.difference:
        return ""
    return f"{_successes(comparison)}: the rates of runs that did not are rates of something else"


def _successes(comparison: Comparison) -> str:
    """How many succeeded."""
    shares = comparison.succeeded
    assert shares is not None
    return (
        f"{shares.b_count} of {shares.b_runs} runs of {comparison.b.arm} succeeded, and "
        f"{shares.a_count} of {shares.a_runs} of {comparison.a.arm}"
    )


def _mostly_censored(arm: Summary, directed: bool) -> bool:
    """Most of its values are limits, or the worst for want of one."""
    lost = arm.censored + (arm.failed if directed else 0)
    return lost > MOSTLY * (lost + arm.measured)


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
    position = (
        MarginPosition.ACROSS
        if lower == higher
        else MarginPosition.BELOW
        if lower
        else MarginPosition.ABOVE
    )
    turned = comparison.criterion.direction is Direction.HIGHER and (
        comparison.a.failed or comparison.b.failed
    )
    if turned and position is not MarginPosition.ACROSS:
        position = MarginPosition(-position)  # the logrank test had the values turned round
    ended = "ended within their limit"
    if comparison.a.failed or comparison.b.failed:
        ended = "have a measured value"
    reason = (
        f"{converged.b_count} of {converged.b_runs} runs of {comparison.b.arm} {ended}, "
        f"and {converged.a_count} of {converged.a_runs} of {comparison.a.arm} ({p_values})"
    )
    doubt = _doubt(comparison, position)
    if doubt:
        position, reason = MarginPosition.ACROSS, f"{reason}, but {doubt}"
    verdict = verdict_of(position, comparison.criterion.direction)
    return replace(comparison, verdict=verdict, reason=reason)


def _doubt(comparison: Comparison, position: MarginPosition) -> str:
    """Why an interval beyond the margin is not enough; empty if it is."""
    if position not in (MarginPosition.BELOW, MarginPosition.ABOVE):
        return ""
    claimed = verdict_of(position, comparison.criterion.direction)
    shares = comparison.succeeded
    if shares is not None and shares.p <= ERROR_RATE and not comparison.criterion.share:
        less_often = Verdict.BETTER if shares.difference < 0 else Verdict.WORSE
        if claimed is less_often:
            return f"only {_successes(comparison)} (p = {_figures(shares.p)})"
    test, effect, medians = comparison.test, comparison.effect, comparison.medians
    if comparison.design is Design.PAIRED and not by_survival(comparison):
        p = _sign_p(comparison, claimed)
        if p > ERROR_RATE:
            return (
                "it is so in too few of the blocks: the arms differ in shape, and which is better "
                f"depends on what counts (sign test, p = {_figures(p)})"
            )
    elif medians and effect:
        beyond = (
            medians.estimate < effect.margin_low
            if position is MarginPosition.BELOW
            else medians.estimate > effect.margin_high
        )
        if not beyond and not by_survival(comparison):
            return (
                "its median is not beyond the margin: the arms differ in shape, and which is "
                "better depends on what counts"
            )
    if test and effect and effect.scale is Scale.SHARE and test.p > ERROR_RATE:
        return f"the exact test does not bear that out (p = {_figures(test.p)})"
    if comparison.adjusted_p is not None and comparison.adjusted_p > ERROR_RATE:
        if _is_least_p(comparison):
            return f"{_too_few(comparison)} (adjusted p = {_figures(comparison.adjusted_p)})"
        return (
            "among so many metrics that comes by chance too "
            f"(adjusted p = {_figures(comparison.adjusted_p)})"
        )
    return ""


def _too_few(comparison: Comparison) -> str:
    """Of one of many. No campaign is planned for a secondary metric: how many blocks would do is no
    advice."""
    kind = "blocks" if comparison.design is Design.PAIRED else "runs of each arm"
    of = "in one of several cells" if comparison.criterion.primary else "for a secondary metric"
    return f"{comparison.size} {kind} cannot decide this {of}"


def _is_least_p(comparison: Comparison) -> bool:
    """So few blocks cannot give a smaller p, even with the difference in every block."""
    test = comparison.test
    paired = comparison.design is Design.PAIRED
    return test is not None and paired and test.p <= 2.0 ** (1 - comparison.size) * (1 + 1e-9)


def _figures(p: float) -> str:
    """Two, or as many as tell it from the error rate."""
    return distinct_number(p, ERROR_RATE, 2)


def _sign_p(comparison: Comparison, claimed: Verdict | None) -> float:
    """How likely so many blocks on the claimed side are, were either as likely.

    The signed rank test supposes that ratios spread evenly about their middle. Where they do not,
    for a steady arm and one with two modes, it finds differences between equal medians.
    """
    better, equal = comparison.better_share, comparison.equal_share
    if better is None or equal is None:
        return 0.0
    size = comparison.size
    ties = round(equal * size)
    count = round(better * size)
    if claimed is Verdict.WORSE:
        count = size - ties - count
    decided = size - ties
    ways = sum(math.comb(decided, n) for n in range(count, decided + 1))
    return ways / float(2**decided)


def _against(
    comparison: Comparison, effect: Effect, position: MarginPosition, needed: int | None
) -> str:
    margin = margin_words(effect, comparison.criterion.unit)
    if position is MarginPosition.WITHIN:
        return f": within the margin of {margin}"
    if position is not MarginPosition.ACROSS:
        return f": beyond the margin of {margin}"
    kind = "blocks" if comparison.design is Design.PAIRED else "runs of each arm"
    if needed is None:
        return f": not settled against the margin of {margin}, and more {kind} may not settle it"
    return (
        f": not settled against the margin of {margin}. A new campaign of about {needed} {kind} "
        "would settle it in 80 % of cases, if the estimate is right"
    )
