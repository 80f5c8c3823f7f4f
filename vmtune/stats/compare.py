"""The entry: compare arm B with arm A, for one metric or for many."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vmtune.errors import InvalidInput
from vmtune.stats.arms import (
    Arms,
    claim_p,
    margin_of,
    match,
    order,
    scale_of,
    shifted,
    tested,
)
from vmtune.stats.coarse import spread_out
from vmtune.stats.judging import ERROR_RATE, by_survival, judge
from vmtune.stats.medians import difference_of_medians
from vmtune.stats.model import (
    Bound,
    Comparison,
    Criterion,
    Design,
    Direction,
    Effect,
    Medians,
    NoiseFloor,
    Rates,
    Sample,
    Scale,
    Survival,
    Test,
    Verdict,
)
from vmtune.stats.noise import floor_for
from vmtune.stats.outcomes import succeeded, with_worst
from vmtune.stats.ranks import Floats
from vmtune.stats.rates import rates
from vmtune.stats.summary import summarise
from vmtune.stats.survival import logrank
from vmtune.stats.turns import in_turns
from vmtune.units import distinct_number

CONFIDENCE = 0.95
"""Of intervals. The verdicts' error rates follow from it (:mod:`~vmtune.stats.verdict`)."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """One metric of one pair of arms, among many."""

    a: Sample
    b: Sample
    criterion: Criterion
    noise_floor: NoiseFloor | None = None
    design: Design | None = None
    in_time: bool = False


def compare(
    a: Sample,
    b: Sample,
    criterion: Criterion,
    *,
    noise_floor: NoiseFloor | None = None,
    design: Design | None = None,
    in_time: bool = False,
) -> Comparison:
    """Hold *b* against *a* by *criterion*.

    :param noise_floor: of the same metric, calibrated where the runs ran.
    :param design: None to pair the arms by their blocks if every run has one; unpaired where
        blocks of the same number are not the same ones.
    :param in_time: arms without blocks get a verdict only if their runs took turns
        (:mod:`~vmtune.stats.turns`).
    :raise InvalidInput: a metric of shares has values other than 0 and 1, or the noise floor is
        of another metric.
    """
    worst_a, worst_b = with_worst(a, b, criterion)
    fine_a, fine_b, steps = spread_out(worst_a, worst_b, criterion.resolution)
    in_blocks = match(worst_a, worst_b, design).design is Design.PAIRED
    arms = match(fine_a, fine_b, Design.UNPAIRED if criterion.share else design)
    found = Comparison(
        criterion=criterion,
        a=summarise(a, criterion.resolution),
        b=summarise(b, criterion.resolution),
        design=arms.design,
        size=arms.size,
        measured=_measured(worst_a, worst_b),
        succeeded=succeeded(a, b, CONFIDENCE),
        in_turns=None if in_blocks or not in_time else in_turns(a, b),
    )
    if arms.size:
        found = (
            _shares(found, arms)
            if criterion.share
            else _values(found, worst_a, worst_b, arms, steps)
        )
        found = floor_for(found, noise_floor, (a, b))
    return judge(replace(found, notes=tuple(_notes(found, arms, noise_floor))))


def compare_many(contrasts: Sequence[Contrast], *, declared: bool = True) -> tuple[Comparison, ...]:
    """Compare them all, and hold their p-values against how many there are.

    :param declared: the primary metric was chosen before the runs.

    The false discovery rate is controlled (Benjamini and Hochberg, 1995) over those whose metric
    is primary, and apart from them over all others: what a campaign was made for does not
    pay for the other metrics. A single primary one is as if it were alone. What cannot
    get a verdict, for lack of data or of a direction, does not count.

    Where runs were put together afterwards nobody declared a primary metric, and all count alike.
    What is adjusted is the p of the claim: "beyond the margin", not "some difference".
    How many succeeded is judged apart too, and first: it pays for nothing else either.

    Benjamini, Y., & Hochberg, Y. (1995). Controlling the false discovery rate. JRSS B 57.
    """
    found = [
        compare(
            each.a,
            each.b,
            each.criterion,
            noise_floor=each.noise_floor,
            design=each.design,
            in_time=each.in_time,
        )
        for each in contrasts
    ]
    for family_of in _FAMILIES if declared else _UNDECLARED:
        family = [
            (place, _claimed(comparison, comparison.test))
            for place, comparison in enumerate(found)
            if family_of(comparison.criterion)
            and comparison.test is not None
            and comparison.criterion.direction is not Direction.NONE
            and comparison.verdict is not Verdict.INSUFFICIENT_DATA
        ]
        if len(family) > 1:
            for (place, _), p in zip(family, adjusted([p for _, p in family]), strict=True):
                found[place] = judge(replace(found[place], adjusted_p=p))
    return tuple(found)


def _claimed(comparison: Comparison, test: Test) -> float:
    """The p of what its verdict would claim."""
    if comparison.claim_p is None or by_survival(comparison):
        return test.p
    return comparison.claim_p


_FAMILIES: tuple[Callable[[Criterion], bool], ...] = (
    lambda criterion: criterion.success and not criterion.primary,
    lambda criterion: criterion.primary,
    lambda criterion: not (criterion.success or criterion.primary),
)
"""Comparisons whose p-values are adjusted together."""
_UNDECLARED: tuple[Callable[[Criterion], bool], ...] = (
    lambda criterion: criterion.success,
    lambda criterion: not criterion.success,
)
"""Likewise, where no metric was declared to be the primary one before the runs."""


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Each p times how many there are by its place among them, and no more than the next one's.

    What scipy's ``false_discovery_control`` gives; without the second that its import takes, which
    a comparison of runs that all converged does not need.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__, reverse=True)
    found = [0.0] * len(p_values)
    least = 1.0
    for after, place in enumerate(order):
        least = min(least, p_values[place] * len(p_values) / (len(p_values) - after))
        found[place] = least
    return found


def _values(
    found: Comparison, a: Sample, b: Sample, arms: Arms, steps: tuple[float, float]
) -> Comparison:
    """With the effect, the tests and the order of the runs."""
    scale, scale_reason = scale_of(match(a, b, arms.design))
    p, exact, tied = tested(arms, scale)
    larger, smaller = order(match(a, b, Design.UNPAIRED))
    in_larger, in_smaller = order(match(a, b, arms.design))
    effect = _effect(found.criterion, arms, scale, steps)
    direction = found.criterion.direction
    if arms.censored:
        found = replace(
            found,
            survival=_survival(arms),
            converged=rates("converged", *_converged(arms), CONFIDENCE),
        )
    return replace(
        found,
        effect=effect,
        medians=_medians(arms, scale),
        claim_p=claim_p(arms, scale, steps, (effect.margin_low, effect.margin_high)),
        scale_reason=scale_reason,
        cliffs_delta=larger - smaller,
        better_share=None
        if direction is Direction.NONE
        else (in_smaller if direction is Direction.LOWER else in_larger),
        equal_share=max(0.0, 1 - in_larger - in_smaller),
        test=Test(_name(arms.design, exact=exact, tied=tied), p, exact),
    )


def _survival(arms: Arms) -> Survival:
    """Where the worst is the least, the values' order is turned round: "sooner" is larger."""
    if arms.a_below.any() or arms.b_below.any():
        return logrank(-arms.a, arms.a_below, -arms.b, arms.b_below)
    return logrank(arms.a, arms.a_censored, arms.b, arms.b_censored)


def _ratio(logarithm: float) -> float:
    """Of which that is the logarithm; the largest number where it is beyond that."""
    return math.exp(min(logarithm, _MAX_LOG))


_MAX_LOG = math.log(sys.float_info.max)


def _medians(arms: Arms, scale: Scale) -> Medians | None:
    """None where a median is not known."""
    lost = [float(u.mean()) for u in (arms.a_unknown, arms.b_unknown)]
    if max(lost) >= 0.5:
        return None
    a, b = (
        np.where(above, np.inf, np.where(below, -np.inf, values))
        for values, above, below in (
            (arms.a, arms.a_censored, arms.a_below),
            (arms.b, arms.b_censored, arms.b_below),
        )
    )
    ratio = scale is Scale.RATIO
    if ratio:
        a, b = (np.log(np.maximum(values, sys.float_info.min)) for values in (a, b))
    at, low, high = difference_of_medians(a, b, CONFIDENCE)
    if not math.isfinite(at):
        return None
    back = _ratio if ratio else float
    ends = (back(float(end)) if math.isfinite(end) else None for end in (low, high))
    return Medians(back(float(at)), *ends)


def _effect(criterion: Criterion, arms: Arms, scale: Scale, steps: tuple[float, float]) -> Effect:
    found, bound = shifted(arms, scale, steps, CONFIDENCE)
    back = _ratio if scale is Scale.RATIO else float
    low, high = (
        back(float(end)) if math.isfinite(end) else None for end in (found.low, found.high)
    )
    margin_low, margin_high = margin_of(criterion, arms, scale)
    return Effect(
        scale=scale,
        estimate=back(float(found.estimate)),
        bound=bound,
        low=low,
        high=high,
        level=found.cut.level,
        margin_low=margin_low,
        margin_high=margin_high,
        rank=int(found.rank),
        sure_low=_sure(found.estimate_low, found.estimate, back),
        sure_high=_sure(found.estimate_high, found.estimate, back),
        differences=arms.size * (arms.size + 1) // 2
        if arms.design is Design.PAIRED
        else len(arms.a) * len(arms.b),
    )


def _sure(end: Floats, estimate: Floats, back: Callable[[float], float]) -> float | None:
    known = math.isfinite(end) and float(end) != float(estimate)
    return back(float(end)) if known else None


def _name(design: Design, *, exact: bool, tied: bool) -> str:
    name = "Wilcoxon signed rank" if design is Design.PAIRED else "Mann-Whitney"
    if not exact:
        return f"{name}, normal approximation"
    return f"{name}, exact by permutation of ties" if tied else f"{name}, exact"


def _shares(found: Comparison, arms: Arms) -> Comparison:
    """With the shares of runs whose value is 1."""
    if not set(arms.a) | set(arms.b) <= {0.0, 1.0}:
        raise InvalidInput(
            f"{found.metric} is a share, and has values other than 0 and 1",
            field="value",
            code="no_share",
            remedy="give 1 for yes and 0 for no, or compare it as a number",
        )
    (yes_a, of_a), (yes_b, of_b) = ((int(values.sum()), len(values)) for values in (arms.a, arms.b))
    shares = rates("yes", (yes_a, of_a), (yes_b, of_b), CONFIDENCE)
    margin = found.criterion.margin
    effect = Effect(
        scale=Scale.SHARE,
        estimate=shares.difference,
        bound=Bound.EXACT,
        low=shares.low,
        high=shares.high,
        level=CONFIDENCE,
        margin_low=-margin,
        margin_high=margin,
    )
    return replace(
        found,
        effect=effect,
        scale_reason="compared by the difference of shares: its values are yes and no",
        cliffs_delta=shares.difference,
        test=Test("Boschloo", shares.p, exact=True),
        shares=shares,
    )


def _converged(arms: Arms) -> tuple[tuple[int, int], tuple[int, int]]:
    """How many of how many values are not censored, of A and of B."""
    return (
        (int((~arms.a_unknown).sum()), len(arms.a)),
        (int((~arms.b_unknown).sum()), len(arms.b)),
    )


def shapes_differ(effect: Effect, medians: Medians) -> bool:
    """The effect's interval does not hold what the medians say."""
    low = -math.inf if effect.low is None else effect.low
    high = math.inf if effect.high is None else effect.high
    return not low <= medians.estimate <= high


def _measured(a: Sample, b: Sample) -> Rates | None:
    """The shares of runs that have a value, unless all have."""
    counts = [
        (sum(o.value is not None for o in sample.observations), len(sample.observations))
        for sample in (a, b)
    ]
    if not all(runs for _, runs in counts) or all(there == runs for there, runs in counts):
        return None
    return rates("measured", counts[0], counts[1], CONFIDENCE)


def _success_notes(found: Comparison) -> Iterator[str]:
    """How many runs did not succeed, and what became of their values."""
    shares = found.succeeded
    if shares is not None and not found.criterion.share:
        for arm, count, runs in (
            (found.a, shares.a_count, shares.a_runs),
            (found.b, shares.b_count, shares.b_runs),
        ):
            worst = arm.failed and found.criterion.direction is not Direction.NONE
            as_worst = f"; {arm.failed} without a value count as the worst" if worst else ""
            if count < runs:
                yield f"{runs - count} of {runs} runs of {arm.arm} did not succeed{as_worst}"


def _notes(found: Comparison, arms: Arms, floor: NoiseFloor | None) -> Iterator[str]:
    """What qualifies the verdict."""
    yield from _success_notes(found)
    for arm in (found.a, found.b):
        counts = found.criterion.direction is not Direction.NONE
        missing = arm.missing - (arm.failed if counts else 0)
        if missing:
            yield f"{missing} of {arm.runs} runs of {arm.arm} have no value"
        if arm.censored:
            yield f"{arm.censored} of {arm.runs} runs of {arm.arm} did not end within their limit"
        if arm.multimodal:
            yield (
                f"{arm.arm} has more than one mode: its runs are of several kinds, "
                "and no single figure describes them"
            )
    if found.measured and found.measured.p <= ERROR_RATE:
        yield (
            f"the arms differ in how many runs have a value (p = {found.measured.p:.2g}): "
            "those that do may not be comparable"
        )
    if arms.left_out:
        kind = "1 block is" if arms.left_out == 1 else f"{arms.left_out} blocks are"
        yield f"{kind} left out: only one of the arms has a value there"
    if found.effect and found.medians and shapes_differ(found.effect, found.medians):
        what = "ratio" if found.effect.scale is Scale.RATIO else "difference"
        both = (found.medians.estimate, found.effect.estimate)
        told, other = (distinct_number(x, y, 3) for x, y in (both, both[::-1]))
        yield (
            f"the {what} of the medians is {told}, and that of the runs {other}: "
            "the arms differ in shape"
        )
    if found.scale_reason and not found.criterion.share:
        yield found.scale_reason
    if found.below_noise_floor:
        yield "smaller than what identical arms show on this host by chance"
    if floor is not None and found.noise_floor is None:
        yield "the noise floor was calibrated in another way, and is not applied"
