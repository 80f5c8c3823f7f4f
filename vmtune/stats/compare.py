"""The entry: compare arm B with arm A, for one metric or for many."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from vmtune.errors import InvalidInput
from vmtune.stats.arms import Arms, margin_of, match, order, scale_of, shifted, tested
from vmtune.stats.judging import ERROR_RATE, judge
from vmtune.stats.model import (
    Bound,
    Comparison,
    Criterion,
    Design,
    Direction,
    Effect,
    NoiseFloor,
    Rates,
    Sample,
    Scale,
    Test,
    Verdict,
)
from vmtune.stats.noise import floor_for
from vmtune.stats.rates import rates
from vmtune.stats.summary import summarise
from vmtune.stats.survival import logrank

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


def compare(
    a: Sample,
    b: Sample,
    criterion: Criterion,
    *,
    noise_floor: NoiseFloor | None = None,
    design: Design | None = None,
) -> Comparison:
    """Hold *b* against *a* by *criterion*.

    :param noise_floor: of the same metric, calibrated where the runs ran.
    :param design: None to pair the arms by their blocks if every run has one; unpaired where
        blocks of the same number are not the same ones.
    :raise InvalidInput: a metric of shares has values other than 0 and 1, or the noise floor is
        of another metric.
    """
    arms = match(a, b, Design.UNPAIRED if criterion.share else design)
    found = Comparison(
        criterion=criterion,
        a=summarise(a, criterion.resolution),
        b=summarise(b, criterion.resolution),
        design=arms.design,
        size=arms.size,
        measured=_measured(a, b),
    )
    if arms.size:
        found = _shares(found, arms) if criterion.share else _values(found, a, b, arms)
        found = floor_for(found, noise_floor)
    return judge(replace(found, notes=tuple(_notes(found, arms, noise_floor))))


def compare_many(contrasts: Sequence[Contrast]) -> tuple[Comparison, ...]:
    """Compare them all, and hold their p-values against how many there are.

    The false discovery rate is controlled (Benjamini and Hochberg, 1995) over those whose metric
    is primary, and apart from them over all others: what a campaign was made for does not
    pay for the other metrics. A single primary one is as if it were alone. What cannot
    get a verdict, for lack of data or of a direction, does not count.

    Benjamini, Y., & Hochberg, Y. (1995). Controlling the false discovery rate. JRSS B 57.
    """
    found = [
        compare(each.a, each.b, each.criterion, noise_floor=each.noise_floor, design=each.design)
        for each in contrasts
    ]
    for primary in (True, False):
        family = [
            (place, comparison.test.p)
            for place, comparison in enumerate(found)
            if comparison.criterion.primary is primary
            and comparison.test is not None
            and comparison.criterion.direction is not Direction.NONE
            and comparison.verdict is not Verdict.INSUFFICIENT_DATA
        ]
        if len(family) > 1:
            for (place, _), p in zip(family, adjusted([p for _, p in family]), strict=True):
                found[place] = judge(replace(found[place], adjusted_p=p))
    return tuple(found)


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


def _values(found: Comparison, a: Sample, b: Sample, arms: Arms) -> Comparison:
    """With the effect, the tests and the order of the runs."""
    scale, scale_reason = scale_of(arms)
    p, exact, tied = tested(arms, scale)
    larger, smaller = order(match(a, b, Design.UNPAIRED))
    in_larger, in_smaller = order(arms)
    direction = found.criterion.direction
    if arms.censored:
        found = replace(
            found,
            survival=logrank(arms.a, arms.a_censored, arms.b, arms.b_censored),
            converged=rates("converged", *_converged(arms), CONFIDENCE),
        )
    return replace(
        found,
        effect=_effect(found.criterion, arms, scale),
        scale_reason=scale_reason,
        cliffs_delta=larger - smaller,
        better_share=None
        if direction is Direction.NONE
        else (in_smaller if direction is Direction.LOWER else in_larger),
        equal_share=max(0.0, 1 - in_larger - in_smaller),
        test=Test(_name(arms.design, exact=exact, tied=tied), p, exact),
    )


def _ratio(logarithm: float) -> float:
    """Of which that is the logarithm; the largest number where it is beyond that."""
    return math.exp(min(logarithm, _MOST_LOG))


_MOST_LOG = math.log(sys.float_info.max)


def _effect(criterion: Criterion, arms: Arms, scale: Scale) -> Effect:
    found, bound = shifted(arms, scale, criterion.resolution, CONFIDENCE)
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
        rank=found.cut.rank,
        differences=arms.size * (arms.size + 1) // 2
        if arms.design is Design.PAIRED
        else len(arms.a) * len(arms.b),
    )


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
        (int((~arms.a_censored).sum()), len(arms.a)),
        (int((~arms.b_censored).sum()), len(arms.b)),
    )


def _measured(a: Sample, b: Sample) -> Rates | None:
    """The shares of runs that have a value, unless all have."""
    counts = [
        (sum(o.value is not None for o in sample.observations), len(sample.observations))
        for sample in (a, b)
    ]
    if not all(runs for _, runs in counts) or all(there == runs for there, runs in counts):
        return None
    return rates("measured", counts[0], counts[1], CONFIDENCE)


def _notes(found: Comparison, arms: Arms, floor: NoiseFloor | None) -> Iterator[str]:
    """What qualifies the verdict."""
    for arm in (found.a, found.b):
        if arm.missing:
            yield f"{arm.missing} of {arm.runs} runs of {arm.arm} have no value"
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
    if found.scale_reason and not found.criterion.share:
        yield found.scale_reason
    if found.below_noise_floor:
        yield "smaller than what identical arms show on this host by chance"
    if floor is not None and found.noise_floor is None:
        yield "the noise floor was calibrated in another way, and is not applied"
