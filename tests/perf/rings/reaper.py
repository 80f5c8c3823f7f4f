"""What emptying the dirty rings from outside does for a guest that migrates.

One vCPU writes to every page of 256 MiB over and over, while a migration that is held at 40 MB/s
runs for 12 s and is then cancelled. Arms: a bitmap; a ring of 65536 with QEMU's own second; the
same ring, reaped by vmtune with each policy. Each block runs all arms once, in shuffled order.

    python -m tests.perf.rings.reaper [BLOCKS]
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.perf.report import Check, environment, finish, spread
from tests.perf.support import folder
from vmtune.bench.migration.order import DirectTestbed, RunOrder
from vmtune.bench.migration.runner import run_migration
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.migration import Scenario, VmShape
from vmtune.bench.model.scenario.parts import MIB
from vmtune.bench.reduce import reduce
from vmtune.lab.domain_xml import kvm_usable
from vmtune.model.tunables.rows.reaper import ReaperPolicy
from vmtune.model.tunables.tunable import Value
from vmtune.model.workload import Workload

BLOCKS = 6
SEED = 20261121
RING_ENTRIES = 65536
HELD_BYTES_PER_S = 40_000_000
LASTS_S = 12
CAVEAT = (
    "Caveat: under this machine's KVM, which is itself virtual, a dirty ring that has filled\n"
    "livelocks: exits for a full ring repeat, and the guest makes hardly any progress. So the\n"
    "stock ring's figures overstate what is gained elsewhere. What carries over is that reaped\n"
    "rings do not fill, and the guest's progress against bitmap tracking."
)

RING: Mapping[str, Value] = {"dirty_ring_size_entries": RING_ENTRIES}
ARMS: Mapping[str, Mapping[str, Value]] = {
    "bitmap": {},
    "stock": RING,
    **{policy.value: {**RING, "reaper_policy": policy.value} for policy in ReaperPolicy},
}
REAPED = tuple(policy.value for policy in ReaperPolicy)
SHOWN = ("guest_write_mib_per_s", "ring_full_exits", "source_cpu_ms", "reaper_rounds")

Metrics = dict[str, float]


def scenario(values: Mapping[str, Value]) -> Scenario:
    """An arm's scenario."""
    return Scenario(
        "perf/reaper",
        vm=VmShape(384 * MIB, 1),
        workload=Workload(256 * MIB, beat_ms=5),
        values={"max_bandwidth_bytes_per_s": HELD_BYTES_PER_S, **values},
        warmup_s=3,
        cooldown_s=1,
        max_seconds=LASTS_S,
        max_iterations=10_000,
        count_ring_full=bool(values),
    )


def states(arm: str) -> tuple[RunState, ...]:
    """How a run may end.

    Held like this a migration does not converge, and what is measured is the time until it is
    cancelled; only a guest that stands on full rings may write so little that it does.
    """
    return RunState.NOT_CONVERGED, *([RunState.COMPLETED] if arm == "stock" else [])


def measure(arm: str, at: Path) -> Metrics:
    """One run."""
    asked = scenario(ARMS[arm])
    order = RunOrder(asked, testbed=DirectTestbed(folder=at), kvm=True)
    result = asyncio.run(run_migration(order, lambda _: None))
    assert result.state in states(arm), f"{result.state}: {result.failure}"
    return reduce(result.record, result.state, asked.values)


def run(blocks: int, at: Path) -> dict[str, list[Metrics]]:
    """Each arm's metrics, a block after the other; one run is thrown away."""
    chance = random.Random(SEED)
    found: dict[str, list[Metrics]] = {arm: [] for arm in ARMS}
    measure("bitmap", at)
    for block in range(blocks):
        arms = list(ARMS)
        chance.shuffle(arms)
        for arm in arms:
            found[arm].append(measure(arm, at))
            rate = found[arm][-1]["guest_write_mib_per_s"]
            print(f"block {block + 1} of {blocks}: {arm:8} {rate:8.0f} MiB/s", flush=True)
    return found


def ratios(found: dict[str, list[Metrics]], arm: str, metric: str) -> list[float]:
    """An arm against the bitmap of the same block."""
    pairs = zip(found[arm], found["bitmap"], strict=True)
    return [ours[metric] / theirs[metric] for ours, theirs in pairs]


def checks(found: dict[str, list[Metrics]]) -> list[Check]:
    """The bars, by medians over the blocks."""
    full = {
        arm: statistics.median(m["ring_full_exits"] for m in found[arm])
        for arm in ("stock", *REAPED)
    }
    made = []
    for arm in REAPED:
        progress = statistics.median(ratios(found, arm, "guest_write_mib_per_s"))
        cpu = statistics.median(ratios(found, arm, "source_cpu_ms"))
        share = 100 * full[arm] / full["stock"] if full["stock"] else 0.0
        made += [
            Check(f"{arm}: guest's progress by bitmap's", progress, "times", 0.9, "min"),
            Check(f"{arm}: ring-full exits by stock's", share, "%", 1, "max"),
            Check(f"{arm}: QEMU's CPU by bitmap's", cpu, "times", 1.1, "max"),
        ]
    return made


def show(found: dict[str, list[Metrics]]) -> None:
    """The table."""
    print()
    print(f"{'arm':10}" + "".join(f"{name:>38}" for name in SHOWN))
    for arm, rows in found.items():
        cells = []
        for name in SHOWN:
            values = [row[name] for row in rows if name in row]
            cells.append(spread(values) if values else "-")
        print(f"{arm:10}" + "".join(f"{cell:>38}" for cell in cells))
    print(CAVEAT)


def main() -> None:
    """Measure and report."""
    if not kvm_usable():
        print("this machine has no usable /dev/kvm, and the dirty ring is KVM's")
        finish("reaper", [], {"skipped": "no usable /dev/kvm"}, environment())
    where = environment()
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS
    with folder() as at:
        found = run(blocks, at / "bench")
    show(found)
    finish("reaper", checks(found), {"blocks": blocks, "arms": found}, where)


if __name__ == "__main__":
    main()
