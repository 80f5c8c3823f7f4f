"""How much memory a guest dirties as a function of the time since it was clean.

A page counts once however often it is written, so that the curve flattens: at first it rises at
the rate at which the guest writes, in the end it is the size of what the guest works on. A single
dirty rate is right for one length of a pass and wrong for all others. That a forecast needs the
curve and not a rate is from Akoush et al., MASCOTS 2010 (10.1109/MASCOTS.2010.13), and from the
series that proposed a predictor to QEMU in April 2023.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace

from vmtune.model.host.dirty_rates import DirtyPoint

_ABOUT = 1.25


@dataclass(frozen=True, slots=True)
class DirtyCurve:
    """Bytes dirtied by time since clean: nothing at 0, never falling, never steeper than before.

    :param points: in the order of time, as :func:`concave` leaves them.
    :param bend: 0 to 1; 1 is proportional to the time before the first point, which is the least
        that it can be there.
    """

    points: tuple[DirtyPoint, ...]
    bend: float = 1.0

    def times(self, factor: float) -> DirtyCurve:
        """Of a guest that dirties *factor* times as much."""
        points = (DirtyPoint(p.after_ms, p.dirty_bytes * factor) for p in self.points)
        return replace(self, points=tuple(points))

    def dirty_bytes(self, after_ms: float) -> float:
        """What is dirty *after_ms* after all was clean.

        Between the points it is interpolated. Before the first it is that point's by the power
        :attr:`bend` of the time. Beyond the last it goes on rising as between the last two, or from
        the origin: the curve may flatten there, so that this is the most that it can be.
        """
        if after_ms <= 0 or not self.points:
            return 0.0
        index = bisect_left(self.points, after_ms, key=lambda point: point.after_ms)
        if index == 0:
            first = self.points[0]
            return first.dirty_bytes * float((after_ms / first.after_ms) ** self.bend)
        before = self.points[index - 1]
        if index < len(self.points):
            slope = _slope(before, self.points[index])
        else:
            slope = _slope(self.points[-2] if index > 1 else DirtyPoint(0.0, 0.0), before)
        return before.dirty_bytes + slope * (after_ms - before.after_ms)

    def bent(self) -> DirtyCurve:
        """The curve that begins by the power of the time that goes through its first two points:
        flat where the guest had written to all that it works on by then. How soon it had cannot be
        told from them: the truth is between the two curves."""
        if len(self.points) < 2 or self.points[0].dirty_bytes <= 0:
            return self
        one, other = self.points[:2]
        rise = math.log(other.dirty_bytes / one.dirty_bytes)
        return replace(self, bend=min(1.0, rise / math.log(other.after_ms / one.after_ms)))


def of_about_one_time(points: Iterable[DirtyPoint]) -> list[list[DirtyPoint]]:
    """The points in groups whose times differ by a quarter at most, in the order of time."""
    groups: list[list[DirtyPoint]] = []
    for point in sorted(points, key=lambda point: point.after_ms):
        if groups and point.after_ms <= groups[-1][0].after_ms * _ABOUT:
            groups[-1].append(point)
        else:
            groups.append([point])
    return groups


def concave(seen: Iterable[DirtyPoint]) -> DirtyCurve:
    """The lowest curve of the form above that no observation exceeds.

    A guest that does more at one time than at another gives points that contradict each other:
    the higher one counts.
    """
    hull = [DirtyPoint(0.0, 0.0)]
    most = 0.0
    for point in sorted(seen, key=lambda point: (point.after_ms, point.dirty_bytes)):
        if point.after_ms <= 0:
            continue
        most = max(most, point.dirty_bytes)
        risen = DirtyPoint(point.after_ms, most)
        if hull[-1].after_ms == risen.after_ms:
            hull.pop()
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) <= _slope(hull[-1], risen):
            hull.pop()
        hull.append(risen)
    return DirtyCurve(tuple(hull[1:]))


def fitted(seen: Iterable[DirtyPoint]) -> DirtyCurve:
    """The curve of the form above that is nearest to the observations, each of another time: what
    contradicts the form is averaged (pool adjacent violators on the slopes, Ayer et al., Annals of
    Mathematical Statistics 26, 1955)."""
    pools: list[tuple[float, float]] = []  # milliseconds, bytes
    before = DirtyPoint(0.0, 0.0)
    for point in sorted(seen, key=lambda point: point.after_ms):
        pool = (point.after_ms - before.after_ms, point.dirty_bytes - before.dirty_bytes)
        before = point
        while pools and pool[1] * pools[-1][0] >= pools[-1][1] * pool[0]:
            last = pools.pop()
            pool = (last[0] + pool[0], last[1] + pool[1])
        pools.append(pool)
    points, at = [], DirtyPoint(0.0, 0.0)
    for took_ms, dirtied in pools:
        at = DirtyPoint(at.after_ms + took_ms, at.dirty_bytes + max(0.0, dirtied))
        points.append(at)
    return DirtyCurve(tuple(points))


def _slope(one: DirtyPoint, other: DirtyPoint) -> float:
    """Bytes a millisecond."""
    return (other.dirty_bytes - one.dirty_bytes) / (other.after_ms - one.after_ms)
