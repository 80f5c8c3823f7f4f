"""Which published figure matches which own one, and how the two setups differ.

Nothing here says that two measurements are equal. A published figure matches an own one when both
measured the same thing (the facts of :attr:`Role.WHAT`), and of those the one whose
sizes are nearest; every difference is reported. What is then compared are not values but effects:
the own ratio of two arms and the published ratio of the same two, and whether they point the same
way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType

from vmtune.bench.model.metrics.table import Direction
from vmtune.reference.changes import Ratio, compared
from vmtune.reference.facts import FACTS, Facts, Role, in_order
from vmtune.reference.tables import Form, Reference, Row, Table

Scale = Mapping[str, int]
"""By facts: how many times smaller own sizes are meant to be than the published ones."""
_AS_LARGE: Scale = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact in which two measurements differ, or of which one of them says nothing.

    :param published: as people read it; empty where the source does not say.
    :param own: likewise; empty where it was not recorded.
    :param factor: own by published, of sizes.
    """

    fact: str
    published: str
    own: str
    factor: float | None = None

    @property
    def text(self) -> str:
        """``VM memory: 512 MiB here, 4 GiB there (0.125 times)``."""
        title = FACTS[self.fact].title
        here = f"{self.own} here" if self.own else "not recorded here"
        there = f"{self.published} there" if self.published else "the source does not say"
        times = f" ({self.factor:.3g} times)" if self.factor is not None else ""
        return f"{title}: {here}, {there}{times}"


@dataclass(frozen=True, slots=True)
class Match:
    """A published figure that matches an own one.

    :param unknown: how many of the sizes that could be compared are known on one side only.
    :param distance: how far apart the sizes are: the sum of their factors, as powers of two.
    """

    row: Row
    differences: tuple[Difference, ...]
    unknown: int
    distance: float


@dataclass(frozen=True, slots=True)
class NoMatch:
    """Why no published figure matches an own one."""

    reason: str


@dataclass(frozen=True, slots=True)
class PublishedEffect:
    """A published comparison: an arm against its base under the same conditions."""

    base: Facts
    arm: Facts
    base_name: str
    row: Row
    ratio: Ratio


@dataclass(frozen=True, slots=True)
class EffectMatch:
    """A published effect that matches an own one.

    :param differences: of the arms' and the bases' setups, each listed once.
    """

    published: PublishedEffect
    differences: tuple[Difference, ...]
    distance: float


class Agreement(StrEnum):
    """How an own effect stands to a published one."""

    SAME = "same direction"
    OPPOSITE = "opposite direction"
    NEITHER = "no direction"
    """The published ratio or the own one does not say which of the two arms is better."""


@dataclass(frozen=True, slots=True)
class OwnEffect:
    """An own ratio of two arms, with its interval."""

    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Standing:
    """An own effect with the matching published one."""

    agreement: Agreement
    own: OwnEffect
    published: Ratio
    differences: tuple[Difference, ...]

    @property
    def text(self) -> str:
        """``same direction; own ratio 0.41 (0.33 to 0.52), published ratio 0.239``."""
        own = f"{self.own.ratio:.3g} ({self.own.low:.3g} to {self.own.high:.3g})"
        return f"{self.agreement.value}; own ratio {own}, published ratio {self.published.text}"


def match_cell(
    of: Reference, table: Table, own: Facts, scale: Scale = _AS_LARGE
) -> Match | NoMatch:
    """The published figure that matches an own measurement.

    Of the figures that are of the same thing, the one with the fewest unknown sizes, then with
    the nearest sizes, then the first of the table.

    :param scale: by how many times own sizes are meant to be smaller. It helps to find the
        figure; the differences are reported unscaled.
    """
    candidates = []
    reasons: list[str] = []
    for row in table.rows:
        published = of.facts_of(row)
        reason = _other_thing(published, own)
        if reason:
            reasons.append(reason)
            continue
        unknown, distance = _apart(published, own, scale)
        candidates.append(Match(row, tuple(_differences(published, own)), unknown, distance))
    if not candidates:
        return NoMatch(_most_frequent(reasons))
    return min(candidates, key=lambda each: (each.unknown, each.distance))


def effects(of: Reference, table: Table) -> Iterator[PublishedEffect]:
    """Every published ratio of *table* but those of an arm to itself."""
    for row in table.rows:
        for each in compared(of, table, row):
            if each.base == row.arm or each.ratio is None:
                continue
            base = {**of.setup, **of.arms[each.base].facts, **row.at}
            yield PublishedEffect(base, of.facts_of(row), each.base, row, each.ratio)


def match_effect(
    of: Reference, table: Table, base: Facts, arm: Facts, scale: Scale = _AS_LARGE
) -> EffectMatch | NoMatch:
    """The published effect that matches an own one, of *arm* against *base*.

    :param scale: as for :func:`match_cell`.
    """
    candidates: list[tuple[int, float, EffectMatch]] = []
    reasons: list[str] = []
    for published in effects(of, table):
        reason = _other_thing(published.base, base) or _other_thing(published.arm, arm)
        if reason:
            reasons.append(reason)
            continue
        (unknown, distance), (more, further) = (
            _apart(published.base, base, scale),
            _apart(published.arm, arm, scale),
        )
        differences = dict.fromkeys(
            (*_differences(published.base, base), *_differences(published.arm, arm))
        )
        match = EffectMatch(published, tuple(differences), distance + further)
        candidates.append((unknown + more, distance + further, match))
    if not candidates:
        return NoMatch(_most_frequent(reasons))
    return min(candidates, key=lambda each: each[:2])[2]


def stand(table: Table, match: EffectMatch, own: OwnEffect) -> Standing:
    """An own effect with the published one that was found for it.

    An own effect has a direction only where its interval lies on one side of 1, a published one
    where its whole range does.
    """
    published = match.published.ratio
    stands = agreement(table, published, own.low, own.high)
    return Standing(stands, own, published, match.differences)


def agreement(
    table: Table, published: Ratio, low: Decimal | float, high: Decimal | float
) -> Agreement:
    """How an own ratio between *low* and *high* stands to a published one of *table*."""
    directions = _direction(published.low, published.high), _direction(low, high)
    if 0 in directions or (table.form is Form.VALUES and table.better is Direction.NONE):
        return Agreement.NEITHER
    return Agreement.SAME if directions[0] == directions[1] else Agreement.OPPOSITE


def _direction(low: Decimal | float, high: Decimal | float) -> int:
    """1 above 1, -1 below, 0 where the range reaches both sides or touches 1."""
    return 1 if low > 1 else -1 if high < 1 else 0


def _other_thing(published: Facts, own: Facts) -> str:
    """Why the two are not of the same thing; empty where they are."""
    for name in in_order(published):
        fact = FACTS[name]
        if fact.role is not Role.WHAT:
            continue
        if name not in own:
            return f"{fact.title} was not recorded here"
        if own[name] != published[name]:
            return f"{fact.title} is {fact.render(own[name])} here"
    return ""


def _apart(published: Facts, own: Facts, scale: Scale) -> tuple[int, float]:
    """How many sizes are known on one side only, and how far apart the others are."""
    unknown, distance = 0, 0.0
    for name, fact in FACTS.items():
        if fact.role is not Role.SCALE or not (name in published or name in own):
            continue
        if name not in published or name not in own:
            unknown += 1
        else:
            here, there = own[name], published[name]
            assert isinstance(here, int) and isinstance(there, int)
            distance += abs(_doublings(there, here * scale.get(name, 1)))
    return unknown, distance


def _doublings(published: int, own: int) -> float:
    """How often *published* has to be doubled to become *own*; 0 counts as half of 1."""
    return math.log2(own or 0.5) - math.log2(published or 0.5)


def _differences(published: Facts, own: Facts) -> Iterator[Difference]:
    for name in in_order({*published, *own}):
        fact = FACTS[name]
        there, here = published.get(name), own.get(name)
        if there == here:
            continue
        if there is None and (here is False or here == "none"):
            continue  # what neither used
        factor = None
        if fact.role is Role.SCALE and isinstance(there, int) and isinstance(here, int) and there:
            factor = here / there
        yield Difference(
            name,
            "" if there is None else fact.render(there),
            "" if here is None else fact.render(here),
            factor,
        )


def _most_frequent(reasons: Iterable[str]) -> str:
    """The reason that holds for most published figures, the first of several."""
    counted: dict[str, int] = {}
    for reason in reasons:
        counted[reason] = counted.get(reason, 0) + 1
    if not counted:
        return "the table has no ratios"
    return max(counted, key=lambda reason: counted[reason])
