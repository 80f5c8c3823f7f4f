"""Sets of CPUs, or of NUMA nodes, as libvirt writes them: ``0-3,^2,8``."""

from __future__ import annotations

from collections.abc import Iterable

ALL = "all"
"""The word for no restriction."""
_BETWEEN = "/"
_MOST = 4096
"""Numbers below it; the kernel's CONFIG_NR_CPUS is at most 8192, and 512 on Debian."""


def canonical_set(text: str) -> str:
    """*text* as libvirt would write it back; ``all`` stays.

    >>> canonical_set("3,0,1,^1"), canonical_set("0-3,^2"), canonical_set("all")
    ('0,3', '0-1,3', 'all')

    :raise ValueError: it is no such set, or an empty one.
    """
    return text if text == ALL else format_set(parse_set(text))


def canonical_sets(text: str) -> str:
    """Likewise of one set for all, or of one for each with ``/`` between; equal ones become one.

    >>> canonical_sets("2/3/5,4"), canonical_sets("1,0/0-1"), canonical_sets("all/2")
    ('2/3/4-5', '0-1', 'all/2')

    :raise ValueError: one is no set.
    """
    sets = [canonical_set(part) for part in text.split(_BETWEEN)]
    return join_sets(sets)


def join_sets(sets: Iterable[str]) -> str:
    """Canonical sets as one text."""
    listed = list(sets)
    return listed[0] if len(set(listed)) == 1 else _BETWEEN.join(listed)


def split_sets(text: str, count: int) -> list[str]:
    """The set of each of *count*, out of a text that has one for all or one for each.

    >>> split_sets("0-1", 2), split_sets("2/3", 2)
    (['0-1', '0-1'], ['2', '3'])

    :raise ValueError: it has another number of sets.
    """
    sets = text.split(_BETWEEN)
    if len(sets) == 1:
        return sets * count
    if len(sets) != count:
        raise ValueError(f"has {len(sets)} sets for {count}")
    return sets


def parse_set(text: str) -> frozenset[int]:
    """The numbers of a set.

    >>> sorted(parse_set("0-2,^1,7"))
    [0, 2, 7]

    :raise ValueError: it is none, or has none.
    """
    found: set[int] = set()
    for part in text.split(","):
        excluded = part.startswith("^")
        first, dash, last = part.removeprefix("^").partition("-")
        low, high = _number(first), _number(last if dash else first)
        if low > high or (excluded and dash):
            raise ValueError(f"{part!r} is not a range")
        numbers = range(low, high + 1)
        found = found.difference(numbers) if excluded else found.union(numbers)
    if not found:
        raise ValueError("the set is empty")
    return frozenset(found)


def format_set(numbers: Iterable[int]) -> str:
    """Numbers as ranges, in order.

    >>> format_set([7, 0, 1, 2])
    '0-2,7'
    """
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 5 and int(text) < _MOST):
        raise ValueError(f"{text[:20]!r} is not a number below {_MOST}")
    return int(text)
