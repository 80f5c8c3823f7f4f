"""The dirty-ring reaper's settings, and what one round of it observes.

KVM notes the pages that each vCPU dirties in a ring per vCPU. A full ring makes its vCPU leave
the guest until QEMU has emptied the rings, so they have to be emptied in time. QEMU's own
reaper does it once a second; a round of ``calc-dirty-rate`` in mode ``dirty-ring`` empties all
rings at its end, whenever vmtune requests one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from vmtune.errors import InvalidInput, Problem
from vmtune.model.host.dirty_rates import usable_entries
from vmtune.model.tunables.rows.reaper import (
    MIN_INTERVAL_MS,
    OFF,
    REAPER,
    STOCK_INTERVAL_MS,
    TARGET_FILL_PERCENT,
    ReaperPolicy,
)
from vmtune.model.tunables.tunable import Value
from vmtune.units import PAGE_BYTES

PAGES_PER_MIB = (1 << 20) // PAGE_BYTES

# QEMU rounds MiB/s down, so a ring that was full may look a little emptier than it was.
_AS_GOOD_AS_FULL = 0.9


_PREFIX = "reaper_"
_ROWS = {row.name.removeprefix(_PREFIX): row for row in REAPER}
"""By the settings' names: their bounds are the tunables'."""


@dataclass(frozen=True, slots=True)
class ReaperSettings:
    """The reaper's settings.

    :param min_interval_ms: never empties the rings more often; at least 50.
    :param max_interval_ms: never less often; at most 60,000.
    :param target_fill_percent: how full ``predict`` lets the fullest ring become, 10 to 90 % of
        the entries that can be used. The other policies have thresholds of their own.
    :raise InvalidInput: with a problem for each field that cannot be accepted.
    """

    policy: ReaperPolicy = ReaperPolicy.PREDICT
    min_interval_ms: int = MIN_INTERVAL_MS
    max_interval_ms: int = STOCK_INTERVAL_MS
    target_fill_percent: int = TARGET_FILL_PERCENT

    def __post_init__(self) -> None:
        problems: list[Problem] = []
        for name, row in _ROWS.items():
            try:
                row.accept(getattr(self, name))
            except ValueError as error:
                remedy = f"allowed: {row.allowed()}"
                problems.append(Problem(name, "invalid_value", str(error), remedy))
        if not problems and self.min_interval_ms > self.max_interval_ms:
            problems.append(
                Problem(
                    "min_interval_ms",
                    "min_above_max",
                    f"{self.min_interval_ms} ms is longer than max_interval_ms, "
                    f"{self.max_interval_ms} ms",
                    "lower min_interval_ms or raise max_interval_ms",
                )
            )
        if problems:
            raise InvalidInput("the reaper's settings cannot be accepted", problems=problems)

    def bounded(self, interval_ms: float) -> int:
        """*interval_ms* as whole milliseconds within the bounds."""
        return int(max(self.min_interval_ms, min(interval_ms, self.max_interval_ms)))


def wanted_reaper(values: Mapping[str, Value]) -> ReaperSettings | None:
    """The settings from a profile's *values*; None for no reaper.

    >>> wanted_reaper({"reaper_policy": "predict", "reaper_max_interval_ms": 500})
    ReaperSettings(policy=<ReaperPolicy.PREDICT: 'predict'>, min_interval_ms=50, \
max_interval_ms=500, target_fill_percent=60)
    """
    named = {name: values[_PREFIX + name] for name in _ROWS if _PREFIX + name in values}
    policy = str(named.pop("policy", OFF))
    if policy == OFF:
        return None
    numbers = {name: int(value) for name, value in named.items()}
    return ReaperSettings(ReaperPolicy(policy), **numbers)


@dataclass(frozen=True, slots=True)
class Round:
    """One emptying of all rings.

    :param elapsed_ms: from the end of the round before to the end of this one: the time in
        which the collected pages were dirtied.
    :param cost_ms: the part of it that was not the requested wait: commands,
        answers, and emptying the rings.
    :param fills: pages collected from each vCPU's ring by the ring's size, as
        :func:`fill_ratios` gives them. Above 1 where a ring had filled and QEMU had emptied it
        in between.
    :param ring_entries: the ring's size.
    :param shared: the migration's own synchronisation has emptied the rings as well in this
        time: they may have been filled by halves several times.
    """

    elapsed_ms: float
    cost_ms: float
    fills: tuple[float, ...]
    ring_entries: int
    shared: bool = False

    def __post_init__(self) -> None:
        if self.elapsed_ms <= 0 or self.cost_ms < 0 or self.ring_entries <= 0:
            raise ValueError(f"no such round can be: {self}")

    @property
    def fullest(self) -> float:
        """The fullest ring's fill ratio; 0 without vCPUs."""
        return max(self.fills, default=0.0)

    @property
    def combined(self) -> float:
        """All vCPUs' pages by the size of one ring: the ratio that the source's policies use."""
        return sum(self.fills)

    @property
    def filled(self) -> bool:
        """Whether some ring must have been full, or nearly.

        QEMU counts ring-full exits nowhere, but does count the pages that it collects at them.
        """
        usable = usable_entries(self.ring_entries) / self.ring_entries
        return not self.shared and self.fullest >= _AS_GOOD_AS_FULL * usable


def fill_ratios(
    mib_per_s: Sequence[float], measured_ms: float, ring_entries: int
) -> tuple[float, ...]:
    """How full each ring was when it was emptied, by the answer of query-dirty-rate.

    :param mib_per_s: ``dirty-rate`` of each vCPU in ``vcpu-dirty-rate``.
    :param measured_ms: ``calc-time`` in the same answer, requested in milliseconds: the time
        that QEMU really measured, by which it divided the pages. Not the requested time, and not
        the time since the round before: pages that were dirtied between two rounds are
        collected, and counted, in the second.
    """
    pages_per_mib_per_s = PAGES_PER_MIB * measured_ms / 1000
    return tuple(rate * pages_per_mib_per_s / ring_entries for rate in mib_per_s)


class Pace(Protocol):
    """A policy in one of its states. States never change: a round leads to another one."""

    @property
    def interval_ms(self) -> int:
        """How long to wait before the rings are emptied next."""

    def after(self, observed: Round) -> Pace:
        """The state after a round."""
