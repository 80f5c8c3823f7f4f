"""Units of tunables and metrics: parsing what people write, printing what is stored.

Values are stored as plain integers in the unit's base (bytes, bytes per second,
milliseconds, ...). People may write ``64Mi``, ``64 MiB``, ``1.5G``, ``10Gbit/s``,
``2s`` or ``30%``. Binary prefixes (Ki, Mi, Gi, Ti) are powers of 1024, plain ones
(k, M, G, T) powers of 1000, as IEC 80000-13 and SI have them.
"""

from __future__ import annotations

import re
from enum import StrEnum
from fractions import Fraction

PAGE_BYTES = 4096
"""A page of memory on x86."""


class Unit(StrEnum):
    """What an integer counts. The value is the suffix used in names and in JSON."""

    NONE = ""
    COUNT = "count"
    ENTRIES = "entries"
    PERCENT = "percent"
    BYTES = "bytes"
    BYTES_PER_S = "bytes_per_s"
    MIB_PER_S = "mib_per_s"
    MS_PER_GIB = "ms_per_gib"
    US_PER_IO = "us_per_io"
    NS = "ns"
    US = "us"
    MS = "ms"
    S = "s"


class UnitError(ValueError):
    """The text is no number, or its unit does not belong here."""


_BINARY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
_DECIMAL = {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_PREFIXES: dict[str, int] = {"": 1, **_BINARY, **_DECIMAL}


def _scaled(suffixes: tuple[str, ...], per: Fraction) -> dict[str, Fraction]:
    """Every prefix with every suffix, as a factor to the base unit."""
    return {
        prefix + suffix: factor * per for prefix, factor in _PREFIXES.items() for suffix in suffixes
    }


_RATE_SUFFIXES = ("", "B", "B/s", "Bps", "/s")
_BIT_SUFFIXES = ("bit/s", "bit", "bps")
_FACTORS: dict[Unit, dict[str, Fraction]] = {
    Unit.NONE: {"": Fraction(1)},
    Unit.COUNT: _scaled(("",), Fraction(1)),
    Unit.ENTRIES: _scaled(("",), Fraction(1)),
    Unit.PERCENT: {"": Fraction(1), "%": Fraction(1), "percent": Fraction(1)},
    Unit.BYTES: _scaled(("", "B"), Fraction(1)),
    Unit.BYTES_PER_S: {
        **_scaled(_RATE_SUFFIXES, Fraction(1)),
        **_scaled(_BIT_SUFFIXES, Fraction(1, 8)),
    },
    # A bare number is MiB/s, as QEMU's vcpu-dirty-limit takes it.
    Unit.MIB_PER_S: {
        **{k: v for k, v in _scaled(("B/s", "B", "/s"), Fraction(1, 1 << 20)).items() if k},
        "": Fraction(1),
    },
    Unit.MS_PER_GIB: {"": Fraction(1), "ms/GiB": Fraction(1), "s/GiB": Fraction(1000)},
    Unit.US_PER_IO: {"": Fraction(1), "us/IO": Fraction(1), "ms/IO": Fraction(1000)},
    Unit.NS: {
        "": Fraction(1), "ns": Fraction(1), "us": Fraction(10**3), "µs": Fraction(10**3),
        "ms": Fraction(10**6), "s": Fraction(10**9),
    },
    Unit.US: {
        "": Fraction(1), "us": Fraction(1), "µs": Fraction(1), "ms": Fraction(1000),
        "s": Fraction(10**6), "ns": Fraction(1, 1000),
    },
    Unit.MS: {
        "": Fraction(1), "ms": Fraction(1), "s": Fraction(1000), "min": Fraction(60_000),
        "us": Fraction(1, 1000),
    },
    Unit.S: {
        "": Fraction(1), "s": Fraction(1), "min": Fraction(60), "h": Fraction(3600),
        "ms": Fraction(1, 1000),
    },
}  # fmt: skip

_EXAMPLES = {
    Unit.NONE: "7",
    Unit.COUNT: "8",
    Unit.ENTRIES: "4096",
    Unit.PERCENT: "30 or 30%",
    Unit.BYTES: "67108864, 64Mi or 64MiB",
    Unit.BYTES_PER_S: "125000000, 1Gi, 100MiB/s or 10Gbit/s",
    Unit.MIB_PER_S: "20 or 20MiB/s",
    Unit.MS_PER_GIB: "450 or 450ms/GiB",
    Unit.US_PER_IO: "12 or 12us/IO",
    Unit.NS: "32768, 32us or 1ms",
    Unit.US: "500, 500us or 50ms",
    Unit.MS: "300, 300ms or 1.5s",
    Unit.S: "15, 15s or 2min",
}

_NUMBER = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ%/]*)\s*", re.ASCII | re.IGNORECASE)
_LONGEST_TEXT = 40


def examples(unit: Unit) -> str:
    """How a value of *unit* may be written, for error messages and help."""
    return _EXAMPLES[unit]


def parse(text: str | int, unit: Unit) -> int:
    """The integer that *text* means in *unit*'s base.

    :raise UnitError: no number, a unit that does not belong to *unit*, or a
        number that is not whole in the base unit (``1.5`` bytes).
    """
    if isinstance(text, bool):
        raise UnitError(f"expects a number such as {_EXAMPLES[unit]}, not true or false")
    if isinstance(text, int):
        return text
    match = _NUMBER.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
    if match is None:
        raise UnitError(f"{text[:_LONGEST_TEXT]!r} is not a number; write {_EXAMPLES[unit]}")
    number, suffix = match.groups()
    factor = _FACTORS[unit].get(suffix)
    if factor is None:
        raise UnitError(f"the unit {suffix!r} does not belong here; write {_EXAMPLES[unit]}")
    value = Fraction(number) * factor
    if value.denominator != 1:
        raise UnitError(f"{text!r} is not a whole number of {unit.value.replace('_per_', '/')}")
    return int(value)


def render(value: int, unit: Unit) -> str:
    """*value* as people read it, exact: ``64 MiB``, ``1,500 ms``, ``30 %``."""
    if unit is Unit.PERCENT:
        return f"{value} %"
    if unit in (Unit.BYTES, Unit.BYTES_PER_S):
        per = "/s" if unit is Unit.BYTES_PER_S else ""
        for prefix, factor in reversed(_BINARY.items()):
            if value and value % factor == 0:
                return f"{value // factor:,} {prefix}B{per}"
        return f"{value:,} B{per}"
    if unit is Unit.MIB_PER_S:
        return f"{value:,} MiB/s"
    if unit is Unit.MS_PER_GIB:
        return f"{value:,} ms/GiB"
    if unit is Unit.US_PER_IO:
        return f"{value:,} us/IO"
    if unit in (Unit.NS, Unit.US, Unit.MS, Unit.S):
        return f"{value:,} {unit.value}"
    return f"{value:,}" if unit is not Unit.NONE else str(value)


LEAST_SHOWN = 0.001
"""Of any unit: less than that is not written as a number."""


def approximate(value: float, unit: Unit, figures: int = 3) -> str:
    """*value* rounded to so many figures, for tables and progress: ``1.53 GiB``. Less than
    a thousandth of a unit is noise of arithmetic: ``< 0.001 ms``."""
    if 0 < abs(value) < LEAST_SHOWN:
        return f"< {approximate(LEAST_SHOWN, unit)}"
    few = abs(value) < 10 ** (figures - 1) and value != round(value)
    if unit not in (Unit.BYTES, Unit.BYTES_PER_S):
        whole = round(value)
        text = render(whole, unit)
        shown = str(whole) if unit in (Unit.NONE, Unit.PERCENT) else f"{whole:,}"
        return text.replace(shown, f"{value:.{figures}g}", 1) if few else text
    per = "/s" if unit is Unit.BYTES_PER_S else ""
    for prefix, factor in reversed(_BINARY.items()):
        if abs(value) >= factor:
            return (
                f"{value / factor:.{figures}g} {prefix}B{per}"
                if value / factor < 1000
                else (f"{value / factor:,.0f} {prefix}B{per}")
            )
    return f"{value:.{figures}g} B{per}" if few else f"{value:,.0f} B{per}"


def distinct_number(value: float, other: float, figures: int) -> str:
    """*value* to so many figures, or as many as tell it from *other*: ``0.0501``, not ``0.05``."""
    for more in range(_MOST_FIGURES):
        text = f"{value:.{figures + more}g}"
        if value == other or text != f"{other:.{figures + more}g}":
            break
    return text


_MOST_FIGURES = 14


def share_text(share: float) -> str:
    """A share from 0 to 1 in percent; all and none only where it is so: ``> 99 %``."""
    if 0.995 <= share < 1:
        return "> 99 %"
    return "< 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"
