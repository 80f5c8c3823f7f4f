"""The space of a study: which tunables it varies, and between which values.

Written in TOML, each by its kind::

    [space]
    multifd = {}                                    # on and off
    multifd_channels = {low = 1, high = 16, log = true}
    multifd_compression = {choices = ["none", "zstd"]}
    downtime_limit_ms = {low = "100ms", high = "1s", step = "50ms"}

or ``space = "auto"`` (:mod:`vmtune.bench.model.tune.auto`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from vmtune.bench.model.scenario.parts import NO_PACKS
from vmtune.documents.strict import Reader, join
from vmtune.errors import Problem
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.rules import contradictions, unknown_tunable
from vmtune.model.tunables.tunable import Kind, Tunable, Value

AUTO = "auto"
MAX_DIMENSIONS = 40
MAX_CHOICES = 50
LOG_FROM = 16
"""A range whose ends are so many times apart is searched by factors, unless it says otherwise."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """One tunable's values: *choices*, or whole numbers from *low* to *high*.

    :param log: equal factors are as likely as equal steps; needs *low* above 0.
    :param step: between values; 1 with *log*.
    """

    choices: tuple[bool | int | str, ...] = ()
    low: int | None = None
    high: int | None = None
    log: bool = False
    step: int = 1

    @property
    def bounds(self) -> tuple[int, int] | None:
        """Of numbers; None for choices."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def size(self) -> int:
        """How many values it has."""
        bounds = self.bounds
        return len(self.choices) if bounds is None else (bounds[1] - bounds[0]) // self.step + 1

    def holds(self, value: Value) -> bool:
        """Whether it is one of its values; between two steps counts."""
        bounds = self.bounds
        if bounds is None:
            return any(value == one and type(value) is type(one) for one in self.choices)
        return type(value) is int and bounds[0] <= value <= bounds[1]

    def points(self, most: int) -> tuple[Value, ...]:
        """At most so many of its values, evenly apart: what a grid would try."""
        bounds = self.bounds
        if bounds is None:
            return self.choices[:most]
        low, high = bounds
        count = min(most, self.size)
        if count < 2:
            return (low,)
        shares = [place / (count - 1) for place in range(count)]
        if self.log:
            raw = [low * (high / low) ** share for share in shares]
        else:
            raw = [low + (high - low) * share for share in shares]
        steps = [low + round((value - low) / self.step) * self.step for value in raw]
        return tuple(dict.fromkeys(min(value, high) for value in steps))


Space = Mapping[str, Dimension]
"""By the tunables' names, switches before what needs them."""


def ordered(space: Space, tunables: TunableRegistry) -> dict[str, Dimension]:
    """In the order in which values are drawn: that of the table, in which a switch is before what
    needs it."""
    return {name: space[name] for name in tunables if name in space}


def read_space(raw: object, where: str, tunables: TunableRegistry, reader: Reader) -> Space:
    """The space of a document; problems go to *reader*."""
    found: dict[str, Dimension] = {}
    given = reader.mapping(raw, where)
    if len(given) > MAX_DIMENSIONS:
        reader.refuse(where, "too_many", f"{len(given)} tunables are more than {MAX_DIMENSIONS}",
                      "leave some out: each costs runs")  # fmt: skip
        return {}
    if not given:
        reader.refuse(
            where, "missing", "there is no tunable to vary", f'name some, or write "{AUTO}"'
        )
    for name, parts in given.items():
        at, row = join(where, name), tunables.get(name)
        if row is None:
            reader.report(partial(unknown_tunable, name, at, tunables, NO_PACKS))
        elif row.read_only:
            reader.refuse(at, "read_only", f"{name} is a counter of QEMU", "leave it out")
        else:
            one = _dimension(row, parts, at, reader)
            if one is not None:
                found[name] = one
    return ordered(found, tunables)


_NUMBERS, _CHOICES = ("low", "high", "log", "step"), ("choices",)


def _dimension(row: Tunable, raw: object, where: str, reader: Reader) -> Dimension | None:
    before = reader.refused
    if isinstance(raw, list | tuple):
        raw = {"choices": raw}
    given = reader.mapping(raw, where, (*_CHOICES, *_NUMBERS))
    given = {name: part for name, part in given.items() if part is not None}
    if reader.refused > before:
        return None
    if given.get("choices"):
        return _choices(row, given, where, reader)
    if row.kind is Kind.INTEGER:
        return _numbers(row, given, where, reader)
    if row.kind is Kind.TEXT:
        reader.refuse(where, "needs_choices", f"{row.name} is a text", "give its choices")
        return None
    other = [name for name in _NUMBERS if name in given]
    if other:
        reader.refuse(join(where, other[0]), "no_number", f"{row.name} is not a number",
                      f"leave it out, or give choices of {row.allowed()}")  # fmt: skip
        return None
    return Dimension((False, True) if row.kind is Kind.BOOLEAN else row.choices)


def _accept(row: Tunable, raw: object, where: str, reader: Reader) -> Value | None:
    try:
        return row.accept(raw)
    except ValueError as error:
        reader.refuse(where, "invalid_value", str(error), f"allowed: {row.allowed()}")
        return None


def _choices(
    row: Tunable, given: Mapping[str, object], where: str, reader: Reader
) -> Dimension | None:
    before, at = reader.refused, join(where, "choices")
    if any(given.get(name) is not None for name in ("low", "high")):
        reader.refuse(at, "two_ways", "there are both choices and bounds", "give one of them")
    values = reader.sequence(
        given["choices"], at, lambda raw, place: _accept(row, raw, place, reader), MAX_CHOICES
    )
    kept = tuple(dict.fromkeys(value for value in values if value is not None))
    if reader.refused == before and len(kept) < 2:
        reader.refuse(at, "one_choice", "a single value leaves nothing to search",
                      "give two or more, or set it in the scenario")  # fmt: skip
    return Dimension(kept) if reader.refused == before else None


def _numbers(
    row: Tunable, given: Mapping[str, object], where: str, reader: Reader
) -> Dimension | None:
    before = reader.refused
    ends: dict[str, int] = {}
    for name in ("low", "high"):
        if given.get(name) is None:
            reader.refuse(join(where, name), "missing", f"{name} is missing",
                          f"give {name}, within {row.allowed()}, or choices")  # fmt: skip
            continue
        value = _accept(row, given[name], join(where, name), reader)
        if isinstance(value, int):
            ends[name] = value
    if reader.refused > before:
        return None
    low, high = ends["low"], ends["high"]
    if low >= high:
        reader.refuse(join(where, "low"), "empty_range",
                      f"low, {row.render(low)}, is not below high, {row.render(high)}",
                      "exchange them, or leave it out")  # fmt: skip
        return None
    if row.power_of_two:
        powers = _powers(low, high)
        return Dimension(powers)
    log = (
        reader.boolean(given["log"], join(where, "log"))
        if "log" in given
        else (low > 0 and high >= low * LOG_FROM and "step" not in given)
    )
    if log and low <= 0:
        reader.refuse(join(where, "log"), "log_of_zero", "a range from 0 has no factors",
                      "raise low, or set log to false")  # fmt: skip
    step = _step(row, given, where, reader, high - low)
    if log and step != 1:
        reader.refuse(join(where, "step"), "step_with_log", "a range by factors has no steps",
                      "leave one out")  # fmt: skip
    high = low + (high - low) // step * step
    return Dimension(low=low, high=high, log=log, step=step) if reader.refused == before else None


def _step(row: Tunable, given: Mapping[str, object], where: str, reader: Reader, most: int) -> int:
    if "step" not in given:
        return 1
    return reader.integer(given["step"], join(where, "step"), 1, most, default=1, unit=row.unit)


def _powers(low: int, high: int) -> tuple[int, ...]:
    first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
    return tuple(1 << power for power in range(first, last + 1))


def settle(
    settings: Mapping[str, Value], base: Mapping[str, Value]
) -> tuple[dict[str, Value], list[Problem]]:
    """*settings* without those that have no effect, laid over *base*; and the rules that what is
    left breaks. What a rule says to need another setting has no effect without it."""
    left = dict(settings)
    while True:
        broken = contradictions({**base, **left}, "")
        idle = [each.field for each in broken if each.field in left and idles(each)]
        if not idle:
            return left, broken
        del left[idle[0]]


_NEEDS = "needs_"
_OTHER_SWITCHES = {
    "dirty_ring": "dirty_ring_size_entries",
    "predict": "reaper_policy",
    "disk_cache": "disk_cache",
}


def idles(problem: Problem) -> bool:
    """The setting to blame merely has no effect."""
    return problem.code.startswith(_NEEDS)


def switch_of(problem: Problem) -> str:
    """The tunable that the rule says is needed; empty where the settings exclude each other."""
    if not idles(problem):
        return ""
    name = problem.code.removeprefix(_NEEDS)
    return _OTHER_SWITCHES.get(name, name)


def same(
    one: Mapping[str, Value],
    other: Mapping[str, Value],
    base: Mapping[str, Value],
    tunables: TunableRegistry,
) -> bool:
    """Whether both are the same settings over *base*: a default that is set is one that is not."""
    return _full(one, base, tunables) == _full(other, base, tunables)


def _full(
    settings: Mapping[str, Value], base: Mapping[str, Value], tunables: TunableRegistry
) -> dict[str, Value]:
    laid = {**base, **settings}
    return {
        name: value
        for name, value in laid.items()
        if name not in tunables or tunables[name].default != value
    }


def outside(settings: Mapping[str, Value], space: Space) -> Iterable[str]:
    """The names of settings that *space* does not have, or has with other values."""
    return (name for name, value in settings.items()
            if name not in space or not space[name].holds(value))  # fmt: skip
