"""Steering against auto-converge, simulated: guests that write slower to faster than the path.

For each rate, as a share of what the path carries, guests that work on 1.5, 3 and 5 seconds of the
path, whose writing swings by 30 %, are migrated with a silence of 300, 500 and 1000 ms and a
deadline of 30 and 60 s: by intent, and by auto-converge as QEMU has it, with a downtime limit of
300 ms. The lost work is the guest's time that was withheld.

    python -m tests.perf.intents.intent_sim
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from unittest import mock

from tests.perf.report import Check, environment, finish
from vmtune.intent.bounds import first_limit_ms
from vmtune.intent.steering import Abilities, Steering, steer
from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.migration.intent import Intent, Means
from vmtune.testing import migration_simulation
from vmtune.testing.migration_simulation import MIB, Guest, run

PATH = 32 * MIB
RATES = (0.5, 0.7, 0.85, 0.95, 1.0, 1.1, 1.3, 1.6, 2.5)
SEEDS = range(4)
_WINDOWS_MS = (64, 256, 1024, 4096)
_ABLE = Abilities(auto_converge=True)


@dataclass(frozen=True, slots=True)
class Pair:
    """One guest and intent, migrated both ways."""

    rate: float
    kept: bool
    theirs_kept: bool
    lost_s: float
    their_lost_s: float
    total_s: float
    their_total_s: float
    cpu_percent: float


def pairs(rate: float) -> Iterator[Pair]:
    """All guests and intents of a rate."""
    for factor, silence, deadline, seed in product((1.5, 3, 5), (300, 500, 1000), (30, 60), SEEDS):
        region, speed = factor * PATH, rate * PATH
        there = Guest(256 * MIB, region, lambda _, s=speed: s, region + 4 * MIB, 0.3, seed)
        curve = tuple(DirtyPoint(ms, min(region, speed * ms / 1000)) for ms in _WINDOWS_MS)
        intent = Intent(silence, deadline, 99, may=(Means.THROTTLE,))
        start = Steering(intent, _ABLE, first_limit_ms(intent), held=False, curve=curve)
        used = 0.0

        def timed(*what: object) -> object:
            nonlocal used
            begun = time.thread_time()
            found = steer(*what)  # type: ignore[arg-type]  # as it is called
            used += time.thread_time() - begun
            return found

        with mock.patch.object(migration_simulation, "steer", timed):
            ours = run(there, PATH, start, sampled_every_ms=100)
        unsteered = Steering(intent, _ABLE, 300, done=True)
        theirs = run(there, PATH, unsteered, auto_converge=True)
        both = [
            done.outcome == "completed"
            and done.total_ms <= deadline * 1000
            and done.silence_ms <= silence
            for done in (ours, theirs)
        ]
        yield Pair(
            rate,
            *both,
            ours.lost_s,
            theirs.lost_s,
            ours.total_ms / 1000,
            theirs.total_ms / 1000,
            used / ours.total_ms * 100_000,
        )


def main() -> None:
    """Simulate and report."""
    found = [pair for rate in RATES for pair in pairs(rate)]
    worst = 0.0
    print("rate  kept, lost and total by intent; by auto-converge")
    for rate in RATES:
        some = [pair for pair in found if pair.rate == rate]

        def mean(name: str, of: list[Pair] = some) -> float:
            return statistics.fmean(float(getattr(each, name)) for each in of)

        lost, theirs = mean("lost_s"), mean("their_lost_s")
        worst = max(worst, lost / theirs)
        print(
            f"{rate:4}  {mean('kept'):.0%} {lost:.2f} s {mean('total_s'):.1f} s; "
            f"{mean('theirs_kept'):.0%} {theirs:.2f} s {mean('their_total_s'):.1f} s"
        )
    cpu = statistics.fmean(pair.cpu_percent for pair in found)
    checks = [
        Check("intents kept", 100 * statistics.fmean(p.kept for p in found), "%", 95, "min"),
        Check("lost work by auto-converge's, the worst rate", worst, "", 1, "max"),
        Check("CPU of the policy", cpu, "% of a core", 0.2, "max"),
    ]
    finish("intent_sim", checks, {"pairs": [asdict(pair) for pair in found]}, environment())


if __name__ == "__main__":
    main()
