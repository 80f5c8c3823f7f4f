"""The arithmetic of axes: from values to where they are drawn, and round figures along them."""

from __future__ import annotations

import math
from dataclasses import dataclass

_STEPS = (1, 2, 2.5, 5, 10)
_MAX_DECADES = 12
_MAX_LOGARITHMIC = 7
_DECADE = 10.0


def ticks(low: float, high: float, count: int, unit: float = 1.0) -> list[float]:
    """About *count* figures from *low* to *high* that are round in *unit*, at even distances."""
    if not high > low or count < 1:
        return [low]
    rough = (high - low) / count / unit
    power = 10.0 ** math.floor(math.log10(rough))
    step = unit * next(power * s for s in _STEPS if power * s >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def decades(low: float, high: float) -> list[float]:
    """Round figures on a logarithmic axis: powers of ten, and where those are few, 2 and 5 of
    each as well."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    powers = [10.0**power for power in range(first, min(last, first + _MAX_DECADES) + 1)]
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
    """A straight or logarithmic axis.

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

    def ticks(self, count: int, unit: float = 1.0) -> list[float]:
        """About *count* figures along it that are round in *unit*."""
        if self.logarithmic and self.high > _DECADE * self.low:
            found = decades(self.low, self.high)
            return found[:: math.ceil(len(found) / _MAX_LOGARITHMIC)]
        return ticks(self.low, self.high, count, unit)
