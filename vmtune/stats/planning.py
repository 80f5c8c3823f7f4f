"""What a campaign can detect: computed before its runs, so that their number is fixed then.

There is no running until it is significant: each interim analysis is another chance of a false
verdict. An inconclusive campaign says how many blocks would settle it; they are run as part
of a new campaign.

The smallest difference that so many blocks find: the interval has to lie beyond the margin, so
the true difference must exceed the margin by what the interval reaches in the power's share of
campaigns. That reach is simulated once for each number of blocks, on normal noise of size 1 with
a fixed seed, by the same code that compares runs; from 30 on it shrinks with the root of the
number. Noise is the standard deviation of a run's logarithm: 0.1 is about 10 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from vmtune.errors import InvalidInput
from vmtune.stats.model import DEFAULT_MARGIN, Design
from vmtune.stats.shift import Spans, shift
from vmtune.stats.verdict import LEAST_PAIRED, LEAST_UNPAIRED

DEFAULT_BLOCKS = 10
QUICK_BLOCKS = 6
DEFAULT_NOISE = 0.1
"""Where nothing is known yet: migrations of the same VM on an idle host spread by about 10 %."""
POWER = 0.8
"""How often a campaign should find the difference that it was planned for."""
_SIMULATED = 2000
_SIMULATED_UP_TO = 30
_SEED = 1
_CONFIDENCE = 0.95


def noise_of(values: Sequence[float]) -> float | None:
    """The noise of earlier runs of one arm; None if it cannot be had from them.

    It is the standard deviation of their logarithms. What blocks take out of it is not
    subtracted, so that plans made with it are rather too cautious.
    """
    if len(values) < 3 or min(values) <= 0:
        return None
    return float(np.std(np.log(values), ddof=1))


def detectable(
    blocks: int,
    noise: float = DEFAULT_NOISE,
    margin: float = DEFAULT_MARGIN,
    design: Design = Design.PAIRED,
) -> float | None:
    """The smallest ratio, above 1, that 80 % of campaigns would call better or worse.

    Downwards it is 1 divided by it. None if so few blocks never give a verdict.

    :param blocks: unpaired, the runs of each arm.
    """
    if noise < 0 or not math.isfinite(noise):
        raise InvalidInput(
            f"{noise} is not a valid noise level",
            field="noise",
            code="out_of_range",
            remedy="write 0.1 for 10 %",
        )
    if blocks < (LEAST_PAIRED if design is Design.PAIRED else LEAST_UNPAIRED):
        return None
    return math.exp(math.log1p(margin) + _reach(blocks, design) * noise)


def _reach(blocks: int, design: Design) -> float:
    """How far below the truth the interval's lower end lies in all but 20 % of campaigns, in
    units of a run's noise."""
    size = min(blocks, _SIMULATED_UP_TO)
    return _simulated_reach(size, design) * math.sqrt(size / blocks)


@lru_cache(maxsize=64)
def _simulated_reach(size: int, design: Design) -> float:
    a, b = np.random.default_rng(_SEED).normal(size=(2, _SIMULATED, size))
    paired = design is Design.PAIRED
    low = shift(Spans.known(a), Spans.known(b), paired=paired, confidence=_CONFIDENCE).low
    return -float(np.quantile(low, 1 - POWER))
