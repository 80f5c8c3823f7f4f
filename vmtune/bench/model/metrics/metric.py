"""What a metric is: one row of a table of metrics.

The tables themselves, one for each kind of benchmark, are in
:mod:`vmtune.bench.model.metrics.table` and the modules next to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from vmtune.stats import model
from vmtune.units import Unit

Direction = model.Direction
"""Which way is better. The statistics' own: their verdicts follow from it."""


LEAST: Mapping[Unit, float] = MappingProxyType(
    {
        Unit.MS: 0.1,
        Unit.US: 0.1,
        Unit.BYTES: 4096.0,
        Unit.BYTES_PER_S: 4096.0,
        Unit.MIB_PER_S: 0.01,
        Unit.MS_PER_GIB: 0.1,
        Unit.PERCENT: 0.5,
        Unit.US_PER_IO: 0.01,
    }
)
"""The smallest difference that matters, by unit: what nobody would notice, a page."""


class Group(StrEnum):
    """What a metric is about."""

    TIME = "time"
    GUEST = "guest"
    CPU = "CPU"
    TRANSFER = "transfer"
    CONTROL = "control"
    LOAD = "load"
    """What a block benchmark's load got done."""
    MEMORY = "memory"
    """Memory and memory maps of a QEMU."""
    BOOT = "boot"
    """How a guest boots."""
    UPDATES = "updates"
    """Updates of a VM's memory map."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of a run.

    :param measures: what it is, in a sentence or two, with what is left out of it.
    :param begins: the event that starts it; empty where it is no span of time.
    :param ends: the event that ends it.
    :param missing: when a run does not have it.
    :param least: the smallest difference that matters, in its unit; None for the unit's usual one.
    """

    name: str
    title: str
    unit: Unit
    direction: Direction
    group: Group
    measures: str
    begins: str = ""
    ends: str = ""
    missing: str = ""
    least: float | None = None

    @property
    def least_difference(self) -> float:
        """The smallest difference that can matter to anybody, in its unit; 0 where any can."""
        return LEAST.get(self.unit, 0.0) if self.least is None else self.least

    @property
    def description(self) -> str:
        """All that is to be known of it, for help and documentation."""
        parts = [self.measures]
        if self.begins:
            parts.append(f"Begins: {self.begins}; ends: {self.ends}.")
        if self.missing:
            parts.append(f"Missing {self.missing}.")
        return " ".join(parts)


def complete(rows: Iterable[Metric]) -> Mapping[str, Metric]:
    """The table by name, after proving that each row says what it has to.

    :raise AssertionError: naming the row and what it lacks.
    """
    table: dict[str, Metric] = {}
    for row in rows:
        assert row.name.isidentifier() and row.name not in table, f"{row.name}: name"
        assert row.title and row.measures.endswith("."), f"{row.name}: title or measures"
        assert bool(row.begins) == bool(row.ends), f"{row.name}: begins without ends"
        assert row.missing and not row.missing.endswith("."), f"{row.name}: missing"
        suffix = row.unit.value
        named = suffix in ("", "count") or row.name.endswith("_" + suffix)
        assert named, f"{row.name}: must end with {suffix}"
        table[row.name] = row
    return MappingProxyType(table)
