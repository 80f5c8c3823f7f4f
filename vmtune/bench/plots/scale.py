"""The arithmetic of a picture: axes with round figures, and fewer points with the same outline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Point = tuple[float, float]
"""When, milliseconds on the picture's axis, and how much."""

_STEPS = (1, 2, 2.5, 5, 10)
_MOST_DECADES = 12


def ticks(low: float, high: float, count: int) -> list[float]:
    """About *count* round figures from *low* to *high*, at even distances."""
    if not high > low or count < 1:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * s for s in _STEPS if power * s >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def decades(low: float, high: float) -> list[float]:
    """Round figures on a logarithmic axis: powers of ten, and where those are few, 2 and 5 of
    each as well."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    powers = [10.0**power for power in range(first, min(last, first + _MOST_DECADES) + 1)]
    found = [power for power in powers if low <= power <= high]
    if len(found) > 2:
        return found
    return [n * power for power in powers for n in (1, 2, 5) if low <= n * power <= high]


def figure(value: float) -> str:
    """A tick's label: ``0``, ``2.5``, ``1,500``."""
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if abs(value) < 1000 else 0
    text = f"{value:,.{min(digits, 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True, slots=True)
class Scale:
    """A straight or logarithmic axis: from values to where they are drawn.

    :param low: what is drawn at *begin*; above 0 where it is logarithmic.
    """

    low: float
    high: float
    begin: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """Where *value* is drawn; what is beyond an end, at that end."""
        if self.logarithmic:
            value = max(value, self.low)
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.begin + min(1.0, max(0.0, share)) * (self.end - self.begin)

    def ticks(self, count: int) -> list[float]:
        """Round figures along it."""
        return (
            decades(self.low, self.high) if self.logarithmic else ticks(self.low, self.high, count)
        )


def finite(points: Iterable[Point]) -> list[Point]:
    """Those that can be drawn."""
    return [p for p in points if math.isfinite(p[0]) and math.isfinite(p[1])]


def within(points: Sequence[Point], low: float, high: float) -> list[Point]:
    """The points from *low* to *high*, and one beyond each end, so that lines reach it."""
    first = next((i for i, p in enumerate(points) if p[0] >= low), len(points))
    last = next((i for i, p in enumerate(points) if p[0] > high), len(points))
    return list(points[max(0, first - 1) : last + 1])


def thinned(points: Sequence[Point], low: float, high: float, columns: int) -> list[Point]:
    """*points* in the order of time, at most four in each of *columns* equal stretches from *low*
    to *high*: the first, the least, the greatest and the last, so that no peak is lost."""
    if len(points) <= 4 * columns or not high > low:
        return list(points)
    kept: list[Point] = []
    column, bucket = -1, list[Point]()
    for point in points:
        place = int((point[0] - low) / (high - low) * columns)
        if place != column:
            kept += _outline(bucket)
            column, bucket = place, []
        bucket.append(point)
    return kept + _outline(bucket)


def _outline(bucket: Sequence[Point]) -> list[Point]:
    if len(bucket) <= 4:
        return list(bucket)
    inner = range(1, len(bucket) - 1)
    least = min(inner, key=lambda i: bucket[i][1])
    most = max(inner, key=lambda i: bucket[i][1])
    places = sorted({0, least, most, len(bucket) - 1})
    return [bucket[place] for place in places]


def spread(places: Sequence[float], least: float) -> list[int]:
    """The numbers of those of *places*, in order, that are at least so far from the one before."""
    kept: list[int] = []
    for number, place in enumerate(places):
        if not kept or place - places[kept[-1]] >= least:
            kept.append(number)
    return kept
