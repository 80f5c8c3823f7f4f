"""What a forecast gives: a likely value, and the bounds between which 90 % are meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vmtune.model.migration.forecast_basis import Position


@dataclass(frozen=True, slots=True)
class Range:
    """*low* <= *likely* <= *high*."""

    low: float
    likely: float
    high: float

    @classmethod
    def exactly(cls, value: float) -> Range:
        """Without doubt."""
        return cls(value, value, value)

    @classmethod
    def around(cls, likely: float, others: Iterable[float]) -> Range:
        """*likely*, and the least and most of all."""
        every = (likely, *others)
        return cls(min(every), likely, max(every))

    def scaled(self, factors: Range) -> Range:
        """Each bound and the likely value by its own factor, kept in order."""
        likely = self.likely * factors.likely
        low, high = self.low * factors.low, self.high * factors.high
        return Range(min(low, likely), likely, max(high, likely))

    def plus(self, more: float) -> Range:
        """*more* added to each."""
        return Range(self.low + more, self.likely + more, self.high + more)

    def added(self, other: Range) -> Range:
        """What comes after what: bound to bound."""
        return Range(self.low + other.low, self.likely + other.likely, self.high + other.high)

    def holds(self, value: float) -> bool:
        """Whether *value* is within the bounds."""
        return self.low <= value <= self.high

    def position(self, value: float) -> Position:
        """Where *value* lies."""
        if self.holds(value):
            return Position.WITHIN
        return Position.BELOW if value < self.low else Position.ABOVE
