"""The dirty-ring reaper's settings, and what one round of it observes.

KVM notes the pages that each vCPU dirties in a ring per vCPU. A full ring makes its vCPU leave
the guest until QEMU has emptied the rings, so somebody has to empty them in time. QEMU's own
reaper does it once a second; a round of ``calc-dirty-rate`` in mode ``dirty-ring`` empties all
rings at its end, whenever vmtune asks for one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from vmtune.errors import InvalidInput, Problem
from vmtune.model.tunables.rows.reaper import OFF, REAPER
from vmtune.model.tunables.tunable import Value

LEAST_INTERVAL_MS = 50
"""The shortest time that calc-dirty-rate measures, QEMU 8.2 and later (migration/dirtyrate.c)."""
MOST_INTERVAL_MS = 60_000
"""The longest."""
STOCK_INTERVAL_MS = 1000
"""How long QEMU's own reaper sleeps (accel/kvm/kvm-all.c, QEMU 6.1 to 10.0)."""
PAGE_BYTES = 4096
PAGES_PER_MIB = (1 << 20) // PAGE_BYTES

# Linux include/linux/kvm_host.h (KVM_DIRTY_RING_RSVD_ENTRIES) and, where the CPU has page
# modification logging, its buffer (PML_LOG_NR_ENTRIES): the vCPU leaves the guest that many
# entries before the ring is really full. Without PML it is only the first.
_RESERVED_ENTRIES = 64 + 512
# QEMU rounds MiB/s down, so a ring that was full may look a little emptier than it was.
_AS_GOOD_AS_FULL = 0.9


class ReaperPolicy(StrEnum):
    """Who decides how long to wait before the rings are emptied again."""

    PREDICT = "predict"
    LEVELS = "levels"
    AIMD = "aimd"


@dataclass(frozen=True, slots=True)
class ReaperSettings:
    """How the reaper is to run.

    :param least_interval_ms: never empties the rings more often; at least 50.
    :param most_interval_ms: never less often; at most 60,000.
    :param target_fill_percent: how full ``predict`` lets the fullest ring become, 10 to 90 % of
        the entries that can be used. The other policies have thresholds of their own.
    :raise InvalidInput: with a problem for each field that cannot be accepted.
    """

    policy: ReaperPolicy = ReaperPolicy.PREDICT
    least_interval_ms: int = LEAST_INTERVAL_MS
    most_interval_ms: int = STOCK_INTERVAL_MS
    target_fill_percent: int = 60

    def __post_init__(self) -> None:
        problems = [
            *_out_of_range(
                "least_interval_ms", self.least_interval_ms, LEAST_INTERVAL_MS, MOST_INTERVAL_MS
            ),
            *_out_of_range(
                "most_interval_ms", self.most_interval_ms, LEAST_INTERVAL_MS, MOST_INTERVAL_MS
            ),
            *_out_of_range("target_fill_percent", self.target_fill_percent, 10, 90),
        ]
        if self.policy not in set(ReaperPolicy):
            known = ", ".join(ReaperPolicy)
            problems.append(
                Problem(
                    "policy",
                    "not_a_choice",
                    f"{self.policy!r} is no reaper policy",
                    f"use one of {known}",
                )
            )
        if not problems and self.least_interval_ms > self.most_interval_ms:
            problems.append(
                Problem(
                    "least_interval_ms",
                    "least_above_most",
                    f"{self.least_interval_ms} ms is longer than most_interval_ms, "
                    f"{self.most_interval_ms} ms",
                    "lower least_interval_ms or raise most_interval_ms",
                )
            )
        if problems:
            raise InvalidInput("the reaper's settings cannot be accepted", problems=problems)

    def bounded(self, interval_ms: float) -> int:
        """*interval_ms* as whole milliseconds within the bounds."""
        return int(max(self.least_interval_ms, min(interval_ms, self.most_interval_ms)))


_PREFIX = "reaper_"
_ROWS = {row.name.removeprefix(_PREFIX): row for row in REAPER}


def wanted_reaper(values: Mapping[str, Value]) -> ReaperSettings | None:
    """The settings that a profile's *values* ask for; None for no reaper.

    >>> wanted_reaper({"reaper_policy": "predict", "reaper_most_interval_ms": 500})
    ReaperSettings(policy=<ReaperPolicy.PREDICT: 'predict'>, least_interval_ms=50, \
most_interval_ms=500, target_fill_percent=60)
    """
    named = {name: values[_PREFIX + name] for name in _ROWS if _PREFIX + name in values}
    policy = str(named.pop("policy", OFF))
    if policy == OFF:
        return None
    numbers = {name: int(value) for name, value in named.items()}
    return ReaperSettings(ReaperPolicy(policy), **numbers)


def _out_of_range(field: str, value: object, least: int, most: int) -> list[Problem]:
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return []
    return [
        Problem(
            field,
            "invalid_value",
            f"{value!r} is no whole number from {least} to {most}",
            f"use {least} to {most}",
        )
    ]


@dataclass(frozen=True, slots=True)
class Round:
    """One emptying of all rings.

    :param elapsed_ms: from the end of the round before to the end of this one: the time in
        which the collected pages were dirtied.
    :param cost_ms: the part of it that was not the wait that had been asked for: commands,
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
    def together(self) -> float:
        """All vCPUs' pages by the size of one ring: the ratio that the source's policies use."""
        return sum(self.fills)

    @property
    def filled(self) -> bool:
        """Whether some ring must have been full, or nearly.

        QEMU counts ring-full exits nowhere, but does count the pages that it collects at them.
        """
        usable = usable_entries(self.ring_entries) / self.ring_entries
        return not self.shared and self.fullest >= _AS_GOOD_AS_FULL * usable


def usable_entries(ring_entries: int) -> int:
    """Entries of a ring that can be used before its vCPU has to leave the guest.

    The kernel keeps 64 in reserve, and 512 more where the CPU logs page modifications in
    hardware. Whether it does cannot be asked of QEMU, so the smaller ring is assumed. The
    smallest ring, 1024, has 448 usable entries: less than half.
    """
    return max(1, ring_entries - _RESERVED_ENTRIES)


def fill_ratios(
    mib_per_s: Sequence[float], measured_ms: float, ring_entries: int
) -> tuple[float, ...]:
    """How full each ring was when it was emptied, by the answer of query-dirty-rate.

    :param mib_per_s: ``dirty-rate`` of each vCPU in ``vcpu-dirty-rate``.
    :param measured_ms: ``calc-time`` in the same answer, asked for in milliseconds: the time
        that QEMU really measured, by which it divided the pages. Not the time asked for, and
        not the time since the round before: pages that were dirtied between two rounds are
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


assert _ROWS["policy"].choices == (OFF, *ReaperPolicy), "the table has other policies"
for _name, _row in _ROWS.items():
    if _name != "policy":
        assert getattr(ReaperSettings(), _name) == _row.default, f"{_name}: another default"
