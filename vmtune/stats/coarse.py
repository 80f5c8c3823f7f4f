"""Values that were rounded to a step.

A value v stands for anything from v - step/2 to v + step/2. Where the runs of an arm hardly differ
by a step, nobody knows more, and intervals are widened to all of that. Where they spread over a
step or so, rounding is one more small noise: each value is put somewhere within its step, evenly
and by a fixed seed, so that equal ones are not taken for certainly equal. The widest spans would
leave 15 % of the power for half as much again of 3 ms. Where runs spread over many steps, values
are taken as they were read. Each arm is judged by itself: one whose runs show where they lie is not
widened for the other's sake.

Schuchman, L. (1964). Dither signals and their effect on quantization noise. IEEE Trans. Commun.
Technol. 12. Sheppard, W. F. (1897). On the calculation of the most probable values of frequency
constants. Proc. London Math. Soc. 29.
"""

from __future__ import annotations

import math
from dataclasses import replace
from hashlib import sha256

import numpy as np

from vmtune.stats.model import Sample

LEAST_SPREAD = 0.35
"""Standard deviations of an arm before it was rounded, in steps: from there on dithering is at most
3 % of a step beside the truth (``exp(-2 pi^2 s^2) / pi``). With less, two arms of which most runs
lie on one side of a border between steps each are taken for apart; with more, half as much again
of 3 ms is found less often."""
WIDE_SPREAD = 5.0
"""From there on rounding adds less than 1 % to the spread."""
_ROUNDING_VARIANCE = 1 / 12
"""What rounding adds to the variance, in squared steps (Sheppard's correction)."""
_FAR = 3.0
_MAD_SIGMA = 1.4826


def spread_out(
    a: Sample, b: Sample, resolution: float
) -> tuple[Sample, Sample, tuple[float, float]]:
    """Both arms, and of each the step that is still to be reckoned with: 0 where its values were
    dithered, or spread over many steps."""
    fine_a, step_a = _fine(a, resolution)
    fine_b, step_b = _fine(b, resolution, "2" if a.arm == b.arm else "")
    return fine_a, fine_b, (step_a, step_b)


def _fine(sample: Sample, resolution: float, salt: str = "") -> tuple[Sample, float]:
    if not resolution:
        return sample, 0.0
    spread = _spread(sample, resolution) / resolution
    if spread < LEAST_SPREAD:
        return sample, resolution
    return (sample if spread >= WIDE_SPREAD else _dithered(sample, resolution, salt)), 0.0


def _spread(sample: Sample, resolution: float) -> float:
    """The standard deviation of the arm before it was rounded, as far as its values show it.

    Of those that were measured: a limit only shows where a run was given up. Without those that
    are farther from the median than three standard deviations, by the median distance from it, and
    half a step at least: one run in ten of another kind says nothing of where the others lie within
    their step.
    """
    values = np.array(
        [
            o.value
            for o in sample.observations
            if o.value is not None and not o.censored and not o.below
        ]
    )
    if len(values) < 2:
        return 0.0
    distances = np.abs(values - np.median(values))
    usual = max(_MAD_SIGMA * float(np.median(distances)), resolution / 2)
    near = values[distances <= _FAR * usual]
    if len(near) < 2:
        return 0.0
    variance = float(np.var(near, ddof=1)) - _ROUNDING_VARIANCE * resolution**2
    return math.sqrt(max(0.0, variance))


def _dithered(sample: Sample, resolution: float, salt: str = "") -> Sample:
    seed = int.from_bytes(sha256((sample.arm + salt).encode()).digest()[:8], "big")
    moves = np.random.default_rng(seed).uniform(-0.5, 0.5, len(sample.observations)) * resolution
    return replace(
        sample,
        observations=tuple(
            o
            if o.value is None or o.censored or o.below
            else replace(o, value=max(o.value + float(move), min(o.value, resolution / 100)))
            for o, move in zip(sample.observations, moves, strict=True)
        ),
    )
