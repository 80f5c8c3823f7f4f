"""Two arms' values side by side, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vmtune.stats.model import Bound, Criterion, Design, Observation, Sample, Scale
from vmtune.stats.ranks import Floats, paired_p, unpaired_p
from vmtune.stats.shift import Shift, Spans, shift
from vmtune.stats.summary import values_of
from vmtune.stats.survival import Flags


@dataclass(frozen=True, slots=True)
class Arms:
    """The values that are compared, censored ones at their limits.

    Paired, both have one of each block, at the same place.

    :param left_out: blocks in which only one arm has a value.
    """

    design: Design
    a: Floats
    a_censored: Flags
    b: Floats
    b_censored: Flags
    left_out: int = 0

    @property
    def size(self) -> int:
        """Pairs, or the runs of the smaller arm."""
        return min(len(self.a), len(self.b))

    @property
    def censored(self) -> bool:
        """Some values are."""
        return bool(self.a_censored.any() or self.b_censored.any())


def match(a: Sample, b: Sample, design: Design | None) -> Arms:
    """Pair the values by their blocks, where both arms ran in blocks.

    :param design: None to see by the blocks; to be given as unpaired where equal numbers of
        blocks are not the same blocks.
    """
    if design is None:
        design = _design(a, b)
    if design is Design.UNPAIRED:
        return Arms(design, *values_of(a), *values_of(b))
    in_a, in_b = _by_block(a), _by_block(b)
    both = sorted(in_a.keys() & in_b.keys())
    pairs_a = Sample(a.arm, tuple(in_a[block] for block in both))
    pairs_b = Sample(b.arm, tuple(in_b[block] for block in both))
    left_out = len(in_a.keys() ^ in_b.keys())
    return Arms(design, *values_of(pairs_a), *values_of(pairs_b), left_out)


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


def shifted(arms: Arms, scale: Scale, resolution: float, confidence: float) -> tuple[Shift, Bound]:
    """The shift on *scale* (of logarithms for a ratio), and how its estimate is to be read."""
    paired = arms.design is Design.PAIRED
    found = shift(
        _spans(arms.a, arms.a_censored, scale, resolution),
        _spans(arms.b, arms.b_censored, scale, resolution),
        paired=paired,
        confidence=confidence,
    )
    if not arms.censored:
        return found, Bound.EXACT
    if resolution:  # rounding moves the estimate a little, and is no reason to call it a bound
        sure, _ = shifted(arms, scale, 0.0, confidence)
    else:
        sure = found
    lower, higher = sure.estimate_low < sure.estimate, sure.estimate_high > sure.estimate
    if lower and higher:
        return found, Bound.UNKNOWN
    return found, Bound.AT_MOST if lower else Bound.AT_LEAST if higher else Bound.EXACT


def _spans(values: Floats, censored: Flags, scale: Scale, resolution: float) -> Spans:
    spans = Spans.known(values)
    if resolution or censored.any():
        low, high = values - resolution / 2, values + resolution / 2
        spans = Spans(values, np.where(censored, values, low), np.where(censored, np.inf, high))
    return spans.log() if scale is Scale.RATIO else spans


def tested(arms: Arms, scale: Scale) -> tuple[float, bool, bool]:
    """The rank test's p, whether it is exact, and whether there were ties.

    Values above the lowest limit count as equal to it. If both arms are alike they are alike
    after that too, so the test holds its error rate.
    """
    a, b = arms.a, arms.b
    if arms.censored:
        limit = min(
            np.min(values, where=censored, initial=np.inf)
            for values, censored in ((a, arms.a_censored), (b, arms.b_censored))
        )
        a, b = np.minimum(a, limit), np.minimum(b, limit)
    if arms.design is Design.UNPAIRED:
        return unpaired_p(a, b)
    differences = np.log(b) - np.log(a) if scale is Scale.RATIO else b - a
    return paired_p(np.round(differences, 12) if scale is Scale.RATIO else differences)


def order(arms: Arms) -> tuple[float, float]:
    """In which share of the pairs B's value is the larger for certain, and the smaller.

    Paired, of the blocks; unpaired, of all pairs of a run of A and a run of B.
    """
    a, a_censored, b, b_censored = arms.a, arms.a_censored, arms.b, arms.b_censored
    if arms.design is Design.UNPAIRED:
        a, a_censored = a[:, None], a_censored[:, None]
    larger = ~a_censored & ((b > a) | (b_censored & (b == a)))
    smaller = ~b_censored & ((b < a) | (a_censored & (b == a)))
    return float(larger.mean()), float(smaller.mean())


def margin_of(criterion: Criterion, arms: Arms, scale: Scale) -> tuple[float, float]:
    """The margin on *scale*: from where to where effects do not matter."""
    if scale is Scale.RATIO:
        return 1 / (1 + criterion.margin), 1 + criterion.margin
    least = criterion.least_difference
    if least is None:
        medians = (abs(float(np.median(values))) for values in (arms.a, arms.b))
        least = criterion.margin * max(medians)
    return -least, least
