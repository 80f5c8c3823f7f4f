"""One arm's values in a few figures, with those known only as "more than" counted in.

A quartile of values of which some are censored lies between the quartile with the limits in
their place and the one with infinity there. Where the two differ, the true one is *above* the
former, and shown so: "> 300 s".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from vmtune.stats.model import Figure, Sample, Summary
from vmtune.stats.modes import multimodal
from vmtune.stats.ranks import Floats

_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def values_of(sample: Sample) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The values that there are, censored ones at their limits; and which those are."""
    there = [o for o in sample.observations if o.value is not None]
    return (
        np.array([o.value for o in there], dtype=np.float64),
        np.array([o.censored for o in there], dtype=np.bool_),
    )


def summarise(sample: Sample, resolution: float = 0.0) -> Summary:
    """Counts, quartiles, extremes, and whether there is more than one mode.

    :param resolution: the step that the values were rounded to.
    """
    values, censored = values_of(sample)
    figures = _figures(values, censored) if len(values) else (None,) * len(_SHARES)
    minimum, lower_quartile, median, upper_quartile, maximum = figures
    return Summary(
        arm=sample.arm,
        runs=len(sample.observations),
        measured=int((~censored).sum()),
        censored=int(censored.sum()),
        missing=len(sample.observations) - len(values),
        failed=sum(o.failed and o.value is None for o in sample.observations),
        minimum=minimum,
        lower_quartile=lower_quartile,
        median=median,
        upper_quartile=upper_quartile,
        maximum=maximum,
        multimodal=multimodal(values[~censored], resolution),
    )


def _figures(values: Floats, censored: npt.NDArray[np.bool_]) -> tuple[Figure, ...]:
    lowest = _quantiles(values)
    if not censored.any():
        return tuple(Figure(value) for value in lowest)
    highest = _quantiles(np.where(censored, np.inf, values))
    return tuple(Figure(low, above=high != low) for low, high in zip(lowest, highest, strict=True))


def _quantiles(values: Floats) -> list[float]:
    """Minimum, quartiles and maximum, interpolated linearly (Hyndman & Fan's type 7)."""
    ordered: list[float] = np.sort(values).tolist()
    found = []
    for share in _SHARES:
        place = share * (len(ordered) - 1)
        first = ordered[int(place)]
        weight = place - int(place)
        # Without a weight the next value does not count, not even an infinite one.
        found.append(first + weight * (ordered[int(place) + 1] - first) if weight else first)
    return found
