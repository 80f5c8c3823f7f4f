"""Points over time: fewer of them with the same outline, and marks that do not touch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Point = tuple[float, float]
"""When, milliseconds on the picture's axis, and how much."""


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
    outline: list[Point] = []
    column, bucket = -1, list[Point]()
    for point in points:
        here = int((point[0] - low) / (high - low) * columns)
        if here != column:
            outline += _outline(bucket)
            column, bucket = here, []
        bucket.append(point)
    return outline + _outline(bucket)


def _outline(bucket: Sequence[Point]) -> list[Point]:
    if len(bucket) <= 4:
        return list(bucket)
    inner = range(1, len(bucket) - 1)
    least = min(inner, key=lambda i: bucket[i][1])
    most = max(inner, key=lambda i: bucket[i][1])
    return [bucket[number] for number in sorted({0, least, most, len(bucket) - 1})]


def apart(places: Sequence[float], least: float) -> list[int]:
    """The numbers of those of *places*, in order, that are at least so far from the one before."""
    found: list[int] = []
    for number, place in enumerate(places):
        if not found or place - places[found[-1]] >= least:
            found.append(number)
    return found
