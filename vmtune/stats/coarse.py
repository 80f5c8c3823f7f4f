"""Values that were rounded to a step.

A value v stands for anything from v - step/2 to v + step/2. Where the runs of an arm hardly differ
by a step, nobody knows more, and intervals are widened to all of that. Where they spread over a
step or so, rounding is one more small noise: each value is put somewhere within its step, evenly
and by a fixed seed, so that equal ones are not taken for certainly equal. The widest spans would
leave 15 % of the power for half as much again of 3 ms. Where runs spread over many steps, values
are taken as they were read.

Schuchman, L. (1964). Dither signals and their effect on quantization noise. IEEE Trans. Commun.
Technol. 12.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import numpy as np

from vmtune.stats.model import Sample

LEAST_SPREAD = 0.4
"""Standard deviations within the arms, in steps: from there on dithering has no bias worth
telling (``exp(-2 pi^2 s^2) / pi`` of a step)."""


WIDE_SPREAD = 5.0
"""From there on rounding adds less than 1 % to the spread."""


def spread_out(a: Sample, b: Sample, resolution: float) -> tuple[Sample, Sample, float]:
    """Both arms, and the step that is still to be reckoned with: 0 where values were dithered."""
    spread = min(map(_spread, (a, b)))
    if not resolution or spread < LEAST_SPREAD * resolution:
        return a, b, resolution
    if spread >= WIDE_SPREAD * resolution:
        return a, b, 0.0
    same = a.arm == b.arm
    return _dithered(a, resolution), _dithered(b, resolution, "2" if same else ""), 0.0


def _spread(sample: Sample) -> float:
    values = [o.value for o in sample.observations if o.value is not None]
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


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
