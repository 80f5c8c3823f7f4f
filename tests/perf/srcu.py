"""What updates of a VM's memory map cost on this machine, by the number of vCPUs that spin.

In randomised blocks, 2,000 additions and deletions of a memory slot for each number of vCPUs: none
(of which a tenth is timed), one, and one for each CPU, at most four. The time of a grace period
with each number is held against that with one vCPU by the comparison engine. The bars: grace
periods poll and do not sleep, and every update that was asked for was timed while all vCPUs spun.

    python -m tests.perf.srcu [BLOCKS]
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tests.perf.report import Check, environment, finish, spread
from vmtune.bench.machine.srcutree import srcutree
from vmtune.hypervisor.linux.srcu import UPDATES, config_hz, measure_srcu, usual_vcpus
from vmtune.model.host.srcu_cost import (
    BOOT_GRACE_PERIODS,
    GRACE_PERIODS_OF_A_PAIR,
    PUBLISHED_US,
    SLOW_US,
    SrcuCost,
)
from vmtune.stats.compare import Contrast, compare_many
from vmtune.stats.model import Criterion, Direction, Observation, Sample
from vmtune.stats.schedule import schedule

BLOCKS = 10
SEED = 20261126
LONGEST_S = 30.0
NONE, ONE = "none", "1"


def arms() -> dict[str, int]:
    """How many vCPUs each has: those of the first never run."""
    return {NONE: 1, **{str(count): count for count in sorted({1, usual_vcpus()})}}


def grace_period_us(cost: SrcuCost, arm: str) -> float:
    """The usual time of one, of that arm."""
    if arm != NONE:
        return cost.grace_period_us
    return (cost.idle_add.median_us + cost.idle_delete.median_us) / GRACE_PERIODS_OF_A_PAIR


def measure(blocks: int) -> dict[str, list[dict[str, Any]]]:
    """Each arm's runs."""
    counts = arms()
    found: dict[str, list[dict[str, Any]]] = {arm: [] for arm in counts}
    for slot in schedule(tuple(counts), blocks, SEED):
        cost = measure_srcu(counts[slot.arm], UPDATES, LONGEST_S)
        if slot.warm_up:
            continue
        each_us = grace_period_us(cost, slot.arm)
        found[slot.arm].append(
            {"block": slot.block, "grace_period_us": each_us, "cost": asdict(cost),
             "usual_boot_s": each_us * BOOT_GRACE_PERIODS / 1e6,
             "mean_boot_s": cost.mean_boot_s,
             "timed": cost.add.count + cost.delete.count}
        )  # fmt: skip
        print(f"block {slot.block} of {blocks}: {slot.arm:5}{each_us:9.1f} us", flush=True)
    return found


def show(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """The table, with the verdicts by one vCPU."""
    samples = {
        arm: Sample(
            arm, tuple(Observation(row["grace_period_us"], block=row["block"]) for row in rows)
        )
        for arm, rows in found.items()
    }
    criterion = Criterion("grace_period_us", Direction.LOWER, unit="us")
    others = [arm for arm in found if arm != ONE]
    compared = dict(
        zip(
            others,
            compare_many([Contrast(samples[ONE], samples[arm], criterion) for arm in others]),
            strict=True,
        )
    )
    print(f"\n{'vCPUs':8}{'one grace period, us':>28}{'9,000 of them, s':>28}  by one vCPU")
    said = []
    for arm, rows in found.items():
        comparison = compared.get(arm)
        verdict = "" if comparison is None else f"{comparison.verdict}: {comparison.reason}"
        each = spread([row["grace_period_us"] for row in rows])
        boots = [row["usual_boot_s"] for row in rows]
        boot = f"{statistics.median(boots):.2f} ({min(boots):.2f} to {max(boots):.2f})"
        print(f"{arm:8}{each:>28}{boot:>28}  {verdict}")
        if comparison is not None:
            said.append({"arm": arm, "verdict": comparison.verdict, "reason": comparison.reason})
    for kernel, us in PUBLISHED_US.items():
        print(f"published, {kernel}: {us:,} us, {us * BOOT_GRACE_PERIODS / 1e6:.1f} s")
    return said


def checks(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Check]:
    """The bars, by the worst arm's median."""
    running = {arm: rows for arm, rows in found.items() if arm != NONE}
    worst = max(
        statistics.median(row["grace_period_us"] for row in rows) for rows in found.values()
    )
    fewest = min(row["timed"] for rows in running.values() for row in rows)
    return [
        Check("a grace period at the median", worst, "us", SLOW_US, "max"),
        Check("9,000 of them", worst * BOOT_GRACE_PERIODS / 1e6, "s",
              SLOW_US * BOOT_GRACE_PERIODS / 1e6, "max"),
        Check("updates timed in each run", fewest, "", UPDATES, "min"),
    ]  # fmt: skip


def main() -> None:
    """Measure and report."""
    where = {**environment(), "srcutree": srcutree(), "config_hz": config_hz()}
    if not os.access("/dev/kvm", os.R_OK | os.W_OK) or os.uname().machine != "x86_64":
        why = "it needs /dev/kvm on an x86-64 machine"
        print(why)
        finish("srcu", [], {"skipped": why}, where)
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS
    found = measure(blocks)
    verdicts = show(found)
    finish("srcu", checks(found), {"runs": found, "verdicts": verdicts}, where)


if __name__ == "__main__":
    main()
