"""Ratios and changes of published figures, recomputed and compared with what was printed.

A printed change is recomputed from the printed figures, exactly, and then rounded to as many
decimals as the print has: to the nearest, and half-way away from zero. The sign is always shown,
and nothing is ``+0.0``. The ten rows of the coroutine-pool table come out so to the printed
decimal; none of them lies half-way.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from vmtune.reference.facts import Facts
from vmtune.reference.tables import ChangeKind, Figure, Form, PrintedChange, Reference, Row, Table

_ONE = Decimal(1)
_PERCENT = Decimal(100)


@dataclass(frozen=True, slots=True)
class Ratio:
    """An arm's figure by its base's: one number (*low* is *high*) or a range.

    :param approximate: one of the figures is.
    """

    low: Decimal
    high: Decimal
    approximate: bool = False

    @property
    def text(self) -> str:
        """``0.239``, ``~0.750``, ``0.790 to 0.900``, ``22.7``: three significant figures."""
        about = "~" if self.approximate else ""
        if self.low == self.high:
            return about + _ratio_text(self.low)
        return f"{about}{_ratio_text(self.low)} to {_ratio_text(self.high)}"


@dataclass(frozen=True, slots=True)
class Compared:
    """A figure with that of its base under the same conditions.

    :param title: the arm's name for this base, a column's title. An arm may be its own base.
    :param ratio: None where one of the two was never reached.
    """

    title: str
    base: str
    ratio: Ratio | None


@dataclass(frozen=True, slots=True)
class HeldChange:
    """A printed change, and what the printed figures give.

    :param recomputed: rounded as the print is.
    """

    printed: str
    recomputed: str
    agrees: bool


def _ratio_text(value: Decimal) -> str:
    places = max(0, 2 - value.adjusted()) if value else 0
    return f"{value.quantize(_ONE.scaleb(-places), ROUND_HALF_UP):,}"


def ratio(figure: Figure, base: Figure) -> Ratio | None:
    """*figure* by *base*; None where either is missing or the base is not above zero."""
    if figure.low is None or figure.high is None or base.low is None or base.high is None:
        return None
    if base.low <= 0:
        return None
    return Ratio(
        figure.low / base.high, figure.high / base.low, figure.approximate or base.approximate
    )


def _ratio_of_effect(form: Form, figure: Figure) -> Ratio | None:
    """The ratio that a printed effect means."""
    low, high = figure.low, figure.high
    if low is None or high is None:
        return None
    if form is Form.REDUCTION:
        return Ratio(_ONE - high / _PERCENT, _ONE - low / _PERCENT, figure.approximate)
    return Ratio(_ONE / high, _ONE / low, figure.approximate) if low > 0 else None


def row_of(table: Table, arm: str, at: Facts) -> Row | None:
    """The figure of *arm* under just these conditions."""
    for row in table.rows:
        if row.arm == arm and row.at == at:
            return row
    return None


def compared(of: Reference, table: Table, row: Row) -> tuple[Compared, ...]:
    """The ratios of *row* to each of its arm's bases that the table has."""
    if table.form is Form.STAMPS:
        return ()
    found = []
    for title, base in of.arms[row.arm].bases.items():
        if base == row.arm:
            found.append(Compared(title, base, Ratio(_ONE, _ONE)))
        elif table.form is Form.VALUES:
            other = row_of(table, base, row.at)
            if other is not None:
                found.append(Compared(title, base, ratio(row.figure, other.figure)))
        else:
            found.append(Compared(title, base, _ratio_of_effect(table.form, row.figure)))
    return tuple(found)


def held(table: Table, row: Row) -> HeldChange | None:
    """The row's printed change, recomputed; None where none was printed."""
    change = row.change
    if change is None:
        return None
    other = row_of(table, change.against, row.at)
    assert other is not None and other.figure.value is not None and row.figure.value is not None
    base, value = other.figure.value, row.figure.value
    if change.kind is ChangeKind.DIFFERENCE:
        difference = value - base
        return HeldChange(
            change.printed, f"{difference:+,} {table.unit}", _about(change, difference)
        )
    percent = change_percent(base, value, decimals(change.printed))
    return HeldChange(change.printed, signed_percent(percent), percent == change.value)


def change_percent(base: Decimal, value: Decimal, places: int) -> Decimal:
    """By how many percent *value* is above *base*, rounded as the module says.

    :raise ValueError: *base* is not above zero.
    """
    if base <= 0:
        raise ValueError("a change has to be from something")
    exact = (value - base) * _PERCENT / base
    rounded = exact.quantize(_ONE.scaleb(-places), ROUND_HALF_UP)
    return rounded if rounded else abs(rounded)


def signed_percent(percent: Decimal) -> str:
    """``+3.3%``, ``-0.3%``, ``+0.0%``."""
    return f"{percent:+}%"


def decimals(printed: str) -> int:
    """How many decimals a printed number has: 1 for ``+3.3%``."""
    digits = "".join(c for c in printed if c.isdigit() or c == ".")
    return len(digits.partition(".")[2])


def _about(change: PrintedChange, difference: Decimal) -> bool:
    """Whether a difference is as printed: to its first digit where the print says about."""
    if not change.approximate:
        return difference == change.value
    return _first_digit(difference) == _first_digit(change.value)


def _first_digit(value: Decimal) -> Decimal:
    return value.quantize(_ONE.scaleb(value.adjusted()), ROUND_HALF_UP) if value else value
