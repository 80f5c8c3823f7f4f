"""Which migrations the dataset consists of: drawn by their number and a seed, so that a number
always is the same migration.

Twenty in a row have the same guest and workload, each with a bandwidth, a downtime limit and a
profile of its own; but the last two of them repeat the first two, so that what no forecast can
foresee is seen. The first 340 of the usual seed were published before that: there it is four in a
row without repeats, slower guests, pages that hold next to nothing but for one kind of guest, and
30 s until a migration is given up.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

from vmtune.bench.model.scenario.migration import Scenario, VmShape
from vmtune.bench.model.scenario.parts import MIB
from vmtune.model.tunables.tunable import Value
from vmtune.model.workload import Workload

SEED = 20261124
OF_ONE_WORKLOAD = 20
"""A probe takes longer than most migrations; of 2,000 they are 168 workloads still."""
REPEATED = 2
"""So many of a workload's migrations are done twice, the first ones."""
_FIRST, _OF_ONE_OF_THE_FIRST = 340, 4
"""The migrations that were published before that."""
_LONGEST_S, _LONGEST_OF_THE_FIRST_S = 8, 30
_LONGEST_THROTTLED_S = 12
"""Auto-converge takes a second or more for each of its steps."""
_LONGEST_AT_FULL_SPEED_S = 4
"""What a guest at full speed has not let come to an end by then, it will not later."""
_BEAT_MS = 5
_FIRST_PASS_WITHIN_S = 8
"""A guest that writes in order has written to all of its region by then."""
_PROFILES = ("stock",) * 5 + ("auto-converge",) * 2 + ("multifd",) * 2 + ("xbzrle", "zstd")
_KINDS = ("in order",) * 5 + ("skewed",) * 5 + ("bursts",) * 3 + ("full speed", "idle", "content")
_SKEWS = (50, 70, 80, 90)
_INCOMPRESSIBLE = (5, 20, 40, 60, 80, 95)
"""Percent of the pages of a guest; the others hold what is packed to about a third."""
_SENT_LEAST_S = 0.4
"""A guest's region takes at least so long where the bandwidth need not fall below the least: in
less time the tenths of a second in which QEMU sends are most of what is measured."""
_LEAST_BANDWIDTH = 25 * MIB


@dataclass(frozen=True, slots=True)
class Drawn:
    """One migration to do.

    :param profile: which of the profiles its values are.
    :param kind: what its guest does, in a word.
    """

    number: int
    profile: str
    kind: str
    scenario: Scenario


def is_one_of_the_first(seed: int, number: int) -> bool:
    """Whether it was published before guests stayed up for several migrations."""
    return seed == SEED and number < _FIRST


def workload_of(seed: int, number: int) -> int:
    """Which workload migration *number* has."""
    if is_one_of_the_first(seed, number):
        return number // _OF_ONE_OF_THE_FIRST
    before = _FIRST if seed == SEED else 0
    return before // _OF_ONE_OF_THE_FIRST + (number - before) // OF_ONE_WORKLOAD


def repeats(seed: int, number: int) -> int:
    """The number of the migration that this one is done like: its own, but for the last ones of a
    workload."""
    if is_one_of_the_first(seed, number):
        return number
    place = (number - (_FIRST if seed == SEED else 0)) % OF_ONE_WORKLOAD
    again = place - (OF_ONE_WORKLOAD - REPEATED)
    return number - OF_ONE_WORKLOAD + REPEATED if again >= 0 else number


def drawn(seed: int, number: int) -> Drawn:
    """Migration *number* of *seed*."""
    first = is_one_of_the_first(seed, number)
    of_all = random.Random(f"{seed}/workload/{workload_of(seed, number)}")
    memory_mib = of_all.choice((128, 192, 256, 384) if first else (128, 128, 192, 192, 256, 384))
    vcpus = of_all.choice((1, 1, 1, 2))
    pace = 10 ** (of_all.uniform(7.4, 7.9) if first else of_all.uniform(7.75, 8.25))
    kind = of_all.choice(_KINDS)
    region_mib = round(memory_mib * of_all.uniform(0.15 if first else 0.4, 0.85))
    workload = _workload(of_all, kind, region_mib, pace)
    if not first and kind != "content":
        workload = replace(workload, random_percent=of_all.choice(_INCOMPRESSIBLE))
    chance = random.Random(f"{seed}/{repeats(seed, number)}")
    profile = chance.choice(_PROFILES)
    bandwidth = pace * 10 ** chance.uniform(-0.3, 0.3)
    return Drawn(
        number,
        profile,
        kind,
        Scenario(
            f"dataset/{number}",
            vm=VmShape(memory_mib * MIB, vcpus),
            workload=workload,
            values=_values(
                chance, profile, bandwidth if first else _slow_enough(bandwidth, workload)
            ),
            warmup_s=1 + _first_pass_s(workload),
            max_seconds=_LONGEST_OF_THE_FIRST_S if first else _longest_s(profile, kind),
            max_iterations=10_000,
        ),
    )


def _slow_enough(bandwidth: float, workload: Workload) -> float:
    return min(bandwidth, max(_LEAST_BANDWIDTH, workload.region_bytes / _SENT_LEAST_S))


def _longest_s(profile: str, kind: str) -> int:
    if profile == "auto-converge":
        return _LONGEST_THROTTLED_S
    return _LONGEST_AT_FULL_SPEED_S if kind == "full speed" else _LONGEST_S


def _values(chance: random.Random, profile: str, bandwidth: float) -> dict[str, Value]:
    values: dict[str, Value] = {
        "max_bandwidth_bytes_per_s": round(bandwidth) // MIB * MIB,
        "downtime_limit_ms": chance.choice((30, 50, 100, 200, 300, 500)),
    }
    if profile == "auto-converge":
        values["auto_converge"] = True
    if profile == "xbzrle":
        values["xbzrle"] = True
    if profile in ("multifd", "zstd"):
        values |= {"multifd": True, "multifd_channels": chance.choice((2, 4))}
    if profile == "zstd":
        values["multifd_compression"] = "zstd"
    return values


def _workload(chance: random.Random, kind: str, region_mib: int, pace: float) -> Workload:
    """A workload that writes at a fifth to one and a half of *pace*, in bursts at more."""
    rate_mb = max(1, round(pace / 1e6 * 10 ** chance.uniform(-0.7, 0.2)))
    skew = chance.choice(_SKEWS)
    rest_ms = chance.choice((200, 500, 1000, 2000))
    zero, incompressible = chance.choice(((0, 100), (30, 30), (60, 40), (0, 0)))
    if kind == "idle":
        rate_mb, skew = 1, 50
    in_order = kind in ("in order", "full speed") or (kind == "bursts" and chance.random() < 0.5)
    if kind == "bursts":  # as much on average, or half as much
        rate_mb *= chance.choice((2, 4))
        region_mib = max(8, min(region_mib, round(rate_mb * chance.uniform(0.2, 2))))
    elif in_order:
        region_mib = max(8, min(region_mib, _FIRST_PASS_WITHIN_S * rate_mb))
    return Workload(
        region_bytes=region_mib * MIB,
        dirty_mb_per_s=0 if kind == "full speed" else rate_mb,
        idle_ms=rest_ms if kind == "bursts" else 0,
        zero_percent=zero if kind == "content" else 0,
        random_percent=incompressible if kind == "content" else 0,
        skew_percent=0 if in_order else skew,
        beat_ms=_BEAT_MS,
        cpu_ring=3,  # where the host emulates the kernel's instructions, ring 0 misses its rate
    )


def _first_pass_s(workload: Workload) -> int:
    """Until all of its region is in use."""
    if workload.skew_percent or not workload.dirty_mb_per_s:
        return 0
    return math.ceil(workload.region_bytes / 1e6 / workload.dirty_mb_per_s)
