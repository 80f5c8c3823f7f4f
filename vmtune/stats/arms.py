"""Two arms' values side by side, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vmtune.stats.model import Bound, Criterion, Design, Observation, Sample, Scale
from vmtune.stats.ranks import Floats, paired_p, unpaired_p
from vmtune.stats.shift import Shift, Spans, shift
from vmtune.stats.studentised import studentised_p
from vmtune.stats.summary import values_of
from vmtune.stats.survival import Flags


@dataclass(frozen=True, slots=True)
class Arms:
    """The values that are compared, censored ones at their limits.

    Paired, both have one of each block, at the same place.

    :param a_censored: which of A's are known only to be above their value; *a_below*: below it.
    :param left_out: blocks in which only one arm has a value.
    """

    design: Design
    a: Floats
    a_censored: Flags
    a_below: Flags
    b: Floats
    b_censored: Flags
    b_below: Flags
    left_out: int = 0

    @property
    def size(self) -> int:
        """Pairs, or the runs of the smaller arm."""
        return min(len(self.a), len(self.b))

    @property
    def censored(self) -> bool:
        """Some values are known only to be above, or below, what they are given as."""
        return bool(self.a_unknown.any() or self.b_unknown.any())

    @property
    def a_unknown(self) -> Flags:
        """Which of A's values are not known exactly."""
        return self.a_censored | self.a_below

    @property
    def b_unknown(self) -> Flags:
        """Likewise B's."""
        return self.b_censored | self.b_below


def match(a: Sample, b: Sample, design: Design | None) -> Arms:
    """Pair the values by their blocks, where both arms ran in blocks.

    :param design: None to see by the blocks; to be given as unpaired where equal numbers of
        blocks are not the same blocks.
    """
    if design is None:
        design = _design(a, b)
    if design is Design.UNPAIRED:
        return Arms(design, *_arrays(a), *_arrays(b))
    in_a, in_b = _by_block(a), _by_block(b)
    both = sorted(in_a.keys() & in_b.keys())
    pairs_a = Sample(a.arm, tuple(in_a[block] for block in both))
    pairs_b = Sample(b.arm, tuple(in_b[block] for block in both))
    left_out = len(in_a.keys() ^ in_b.keys())
    return Arms(design, *_arrays(pairs_a), *_arrays(pairs_b), left_out)


def _arrays(sample: Sample) -> tuple[Floats, Flags, Flags]:
    below = [o.below for o in sample.observations if o.value is not None]
    return (*values_of(sample), np.array(below, dtype=np.bool_))


def _design(a: Sample, b: Sample) -> Design:
    of_a, of_b = ({o.block for o in sample.observations} for sample in (a, b))
    paired = bool(of_a & of_b) and None not in of_a | of_b
    return Design.PAIRED if paired else Design.UNPAIRED


def _by_block(sample: Sample) -> dict[int, Observation]:
    """The observations that have a value and a block."""
    return {o.block: o for o in sample.observations if o.block is not None and o.value is not None}


def scale_of(arms: Arms) -> tuple[Scale, str]:
    """A ratio if it can be had; else why not."""
    lowest = min(arms.a.min(), arms.b.min())
    if lowest > 0:
        return Scale.RATIO, ""
    what = "0" if lowest == 0 else "less than 0"
    return Scale.DIFFERENCE, f"compared by difference: a value is {what}, which has no ratio"


def shifted(
    arms: Arms, scale: Scale, steps: tuple[float, float], confidence: float
) -> tuple[Shift, Bound]:
    """The shift on *scale* (of logarithms for a ratio), and how its estimate is to be read.

    :param steps: to which A's values were rounded, and B's; 0 where they were not.
    """
    paired = arms.design is Design.PAIRED
    found = shift(
        *_both_spans(arms, scale, steps),
        paired=paired,
        confidence=confidence,
    )
    if not arms.censored:
        return found, Bound.EXACT
    if any(steps):  # rounding moves the estimate a little, and is no reason to call it a bound
        sure, _ = shifted(arms, scale, _EXACT, confidence)
    else:
        sure = found
    lower, higher = sure.estimate_low < sure.estimate, sure.estimate_high > sure.estimate
    if lower and higher:
        return found, Bound.UNKNOWN
    return found, Bound.AT_MOST if lower else Bound.AT_LEAST if higher else Bound.EXACT


_EXACT = (0.0, 0.0)


def _both_spans(arms: Arms, scale: Scale, steps: tuple[float, float]) -> tuple[Spans, Spans]:
    a, b = steps
    return (
        _spans(arms.a, arms.a_censored, arms.a_below, scale, a),
        _spans(arms.b, arms.b_censored, arms.b_below, scale, b),
    )


def _spans(values: Floats, censored: Flags, below: Flags, scale: Scale, step: float) -> Spans:
    spans = Spans.known(values)
    if step or censored.any() or below.any():
        low, high = values - step / 2, values + step / 2
        low, high = np.where(censored, values, low), np.where(below, values, high)
        low, high = np.where(below, -np.inf, low), np.where(censored, np.inf, high)
        spans = Spans(values, low, high)
    return spans.log() if scale is Scale.RATIO else spans


def tested(arms: Arms, scale: Scale) -> tuple[float, bool, bool]:
    """The rank test's p, whether it is exact, and whether there were ties.

    Values above the lowest limit count as equal to it, and those below the highest of which
    only that is known likewise. If both arms are alike they are alike after that too, so the
    test holds its error rate.
    """
    a, b = arms.a, arms.b
    if arms.censored:
        least, most = (
            max(
                np.max(v, where=w, initial=-np.inf)
                for v, w in ((a, arms.a_below), (b, arms.b_below))
            ),
            min(
                np.min(v, where=w, initial=np.inf)
                for v, w in ((a, arms.a_censored), (b, arms.b_censored))
            ),
        )
        a, b = (np.minimum(np.maximum(values, least), most) for values in (a, b))
    if arms.design is Design.UNPAIRED:
        p, exact, tied = unpaired_p(a, b)
        studentised = min(1.0, 2 * min(studentised_p(a, b), studentised_p(b, a)))
        return (p, exact, tied) if p >= studentised else (studentised, False, tied)
    differences = np.log(b) - np.log(a) if scale is Scale.RATIO else b - a
    return paired_p(np.round(differences, 12) if scale is Scale.RATIO else differences)


def order(arms: Arms) -> tuple[float, float]:
    """In which share of the pairs B's value is the larger for certain, and the smaller.

    Paired, of the blocks; unpaired, of all pairs of a run of A and a run of B.
    """
    a, a_above, a_below, b = arms.a, arms.a_censored, arms.a_below, arms.b
    b_above, b_below = arms.b_censored, arms.b_below
    if arms.design is Design.UNPAIRED:
        a, a_above, a_below = a[:, None], a_above[:, None], a_below[:, None]
    larger = ~a_above & ~b_below & ((b > a) | ((b_above | a_below) & (b == a)))
    smaller = ~b_above & ~a_below & ((b < a) | ((a_above | b_below) & (b == a)))
    return float(larger.mean()), float(smaller.mean())


def margin_of(criterion: Criterion, arms: Arms, scale: Scale) -> tuple[float, float]:
    """The margin on *scale*: from where to where effects do not matter.

    An effect matters if it is beyond the declared share and beyond the least difference, on either
    scale: a single value of 0, which changes the scale, may not change what matters.
    """
    least = criterion.least_difference or 0.0
    medians = [abs(float(np.median(values))) for values in (arms.a, arms.b)]
    if scale is Scale.RATIO:
        factor = 1 + max(criterion.margin, least / min(medians))
        return 1 / factor, factor
    most = max(criterion.margin * max(medians), least)
    return -most, most


def claim_p(
    arms: Arms, scale: Scale, steps: tuple[float, float], margin: tuple[float, float]
) -> float:
    """The p of "beyond the margin", two-sided: the claim that a verdict makes.

    Of values that are known only in part it takes what speaks least for the claim.

    :param steps: to which A's values were rounded, and B's.
    """
    least, most = (float(np.log(end)) for end in margin) if scale is Scale.RATIO else margin
    a, b = _both_spans(arms, scale, steps)
    if arms.design is Design.PAIRED:
        with np.errstate(invalid="ignore"):
            above, below = b.low - a.high - most, least - (b.high - a.low)
        return min(
            paired_p(np.where(np.isnan(each), -np.inf, np.round(each, 12)), upper=True)[0]
            for each in (above, below)
        )
    found = []
    for first, second in ((a.high, b.low - most), (b.high, a.low + least)):
        exact = unpaired_p(np.round(first, 12), np.round(second, 12), upper=True)[0]
        found.append(max(exact, min(1.0, 2 * studentised_p(first, second))))
    return min(found)
