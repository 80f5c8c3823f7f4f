"""How much of a guest's memory holds anything but zeros, by a sample of its pages: with bounds."""

from __future__ import annotations

import math

from vmtune.forecast.ranges import Range
from vmtune.model.host.page_contents import RUN_BYTES, RUNS, PageContents
from vmtune.stats.rates import wilson

_Z = 1.96
"""Of a normal distribution: 95 % lie within."""


def held_range(held_bytes: int, memory_bytes: int, contents: PageContents) -> Range:
    """The 95 % interval around *held_bytes*.

    Two samples err: that of the pages, each of which holds zeros or does not (Wilson's interval),
    and, of guests that are larger than all runs together, that of the runs, which is taken as if
    each were there as a whole or not at all. That is the most by which it can err, and near to what
    huge pages do.

    :param contents: of the pages from which *held_bytes* comes.
    """
    others = contents.pages - round(contents.pages * contents.zero_share)
    share, low, high = wilson(others, contents.pages, _Z)
    there = min(1.0, held_bytes / (memory_bytes * share)) if share else 1.0
    least, most = _there(there, memory_bytes)
    likely, *bounds = (
        min(float(memory_bytes), max(1.0, each))
        for each in (held_bytes, memory_bytes * low * least, memory_bytes * high * most)
    )
    return Range.around(likely, bounds)


def _there(share: float, memory_bytes: int) -> tuple[float, float]:
    """The interval of how much of the memory is there, of which runs were looked up."""
    runs = math.ceil(memory_bytes / RUN_BYTES)
    if runs <= RUNS:
        return share, share
    _, low, high = wilson(round(share * RUNS), RUNS, _Z)
    missing = math.sqrt(1 - RUNS / runs)  # of a finite number, what is known does not err
    return share - (share - low) * missing, share + (high - share) * missing
