"""What the patch of QEMU costs a guest's requests, by QEMUs of both builds that take turns.

The project's guest loads four virtio-blk disks on null-co nodes: 16 jobs, each with a depth of 64,
random reads and writes of 4 KiB, with the disks on 4, 2 and 1 iothreads. Counted are the requests
that QEMU's disks have completed (``query-blockstats``).

The speed of a virtual machine wanders: runs of 5 s of one build, one after the other, differed by
15 %, pinned to CPUs or not. So the two QEMUs take turns of a tenth of a second, by ``cont`` and
``stop``, in an order that swaps. And two QEMUs of one build differ for as long as they live (once
by 1.7 % over 400 turns of each): each block has two of its own. Between blocks the ratio then
varies by about 2 %.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from tests.perf.kept import Kept
from tests.perf.pools.loaded_qemu import LOOK_EVERY_S, PATIENCE_S, loaded_qemu
from tests.perf.pools.pool_model import Monitor
from tests.perf.report import Check, spread
from tests.perf.support import folder
from tests.support.qemus.qemu import Build
from vmtune.stats.compare import Comparison, Contrast, compare_many
from vmtune.stats.model import Criterion, Direction, Observation, Sample
from vmtune.stats.schedule import schedule

PATCHED, UNPATCHED = "patched", "unpatched"
IOTHREADS = (4, 2, 1)
"""The first is the one that is to decide: a comparison's others are secondary."""
BLOCKS = 40
"""1 % is to be seen: where the ratio varies by 2 % between blocks, these bound it to 0.6 %."""
TURNS = 60
WARM_TURNS = 2
TURN_S = 0.1
LASTS_S = 600
"""A guest's load, which is never waited for."""
SEED = 20261126
MARGIN = 0.01

Found = Mapping[int, Mapping[str, Sequence[Mapping[str, float]]]]
"""By iothreads, and by arms: IOPS of each block."""


class Turns:
    """A QEMU that runs only in its turns."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._requests = 0
        self._ran_s = 0.0

    @property
    def iops(self) -> float:
        """In its turns together."""
        return self._requests / self._ran_s

    async def boot(self) -> None:
        """Run until its guest has begun."""
        self._monitor.execute("cont")
        async with asyncio.timeout(PATIENCE_S):
            while not self._completed():  # noqa: ASYNC110 - QEMU tells nobody
                await asyncio.sleep(LOOK_EVERY_S)
        self._monitor.execute("stop")

    async def take(self, *, counts: bool = True) -> None:
        """One turn."""
        before = self._completed()
        began = time.perf_counter()
        self._monitor.execute("cont")
        await asyncio.sleep(TURN_S)
        self._monitor.execute("stop")  # answers when all requests are complete
        ran_s = time.perf_counter() - began
        if counts:
            self._requests += self._completed() - before
            self._ran_s += ran_s

    def _completed(self) -> int:
        disks = [disk["stats"] for disk in self._monitor.execute("query-blockstats")]
        return sum(each["rd_operations"] + each["wr_operations"] for each in disks)


async def in_turns(builds: Mapping[str, Build], iothreads: int) -> dict[str, float]:
    """IOPS of one QEMU of each build, the first of which begins."""
    async with AsyncExitStack() as stack:
        qemus = {}
        for arm, build in builds.items():
            at = stack.enter_context(folder())
            up = loaded_qemu(build, iothreads, LASTS_S, at)
            qemus[arm] = Turns((await stack.enter_async_context(up)).monitor)
        await asyncio.gather(*(qemu.boot() for qemu in qemus.values()))
        order = list(qemus.values())
        for turn in range(WARM_TURNS + TURNS):
            for qemu in order:
                await qemu.take(counts=turn >= WARM_TURNS)
            order.reverse()
        return {arm: qemu.iops for arm, qemu in qemus.items()}


def by_iothreads(
    builds: Mapping[str, Build], iothreads: Sequence[int], blocks: int, kept: Kept
) -> dict[int, dict[str, list[dict[str, float]]]]:
    """Each number's, and arm's, blocks."""
    found: dict[int, dict[str, list[dict[str, float]]]] = {
        count: {arm: [] for arm in builds} for count in iothreads
    }
    conditions = [str(count) for count in iothreads]
    for slot in schedule((PATCHED, UNPATCHED), blocks, SEED, 0, conditions):
        count = int(slot.condition)
        if len(found[count][slot.arm]) == slot.block:
            continue  # the block's other arm was first, and measured both

        def measure(count: int = count, first: str = slot.arm) -> dict[str, float]:
            order = sorted(builds, key=lambda arm: arm != first)
            return asyncio.run(in_turns({arm: builds[arm] for arm in order}, count))

        of = f"turns {TURNS} {TURN_S} s {slot.block} {count}"
        for arm, iops in kept.once(of, measure).items():
            found[count][arm].append({"block": slot.block or 0, "iops": iops})
        last = {arm: rows[-1]["iops"] for arm, rows in found[count].items()}
        print(f"block {slot.block} of {blocks}: {count} iothreads, "
              f"{last[UNPATCHED]:.0f} IOPS, patched {last[PATCHED]:.0f}, "
              f"{last[PATCHED] / last[UNPATCHED]:.3f} times", flush=True)  # fmt: skip
    return found


def compared(found: Found) -> dict[int, Comparison]:
    """What the patch does to requests per second, by the number of iothreads."""
    contrasts: list[Contrast] = []
    for arms in found.values():
        criterion = Criterion(
            "iops", Direction.HIGHER, unit="1/s", margin=MARGIN, primary=not contrasts
        )
        samples = {
            arm: Sample(
                arm, tuple(Observation(row["iops"], block=int(row["block"])) for row in rows)
            )
            for arm, rows in arms.items()
        }
        contrasts.append(Contrast(samples[UNPATCHED], samples[PATCHED], criterion))
    return dict(zip(found, compare_many(contrasts), strict=True))


def show(found: Found, comparisons: Mapping[int, Comparison]) -> list[dict[str, Any]]:
    """The table, with the verdicts."""
    print(f"\n{'iothreads':10}{'IOPS, unpatched':>32}{'IOPS, patched':>32}  patched by unpatched")
    said = []
    for count, arms in found.items():
        comparison = comparisons[count]
        effect = comparison.effect
        ratio = "" if effect is None else f"{effect.estimate:.3f} "
        cells = [spread([row["iops"] for row in arms[arm]]) for arm in (UNPATCHED, PATCHED)]
        print(f"{count:<10}{cells[0]:>32}{cells[1]:>32}  {ratio}{comparison.verdict}: "
              f"{comparison.reason}")  # fmt: skip
        said.append(
            {
                "iothreads": count,
                "verdict": comparison.verdict,
                "reason": comparison.reason,
                "ratio": effect and [effect.estimate, effect.low, effect.high],
            }
        )
    return said


def checks(comparisons: Mapping[int, Comparison]) -> list[Check]:
    """The bars: a comparison that is not certain enough of at most 1 % does not hold it."""
    held = []
    for count, comparison in comparisons.items():
        effect = comparison.effect
        low = effect.low if effect is not None and effect.low is not None else 0.0
        held.append(
            Check(f"guest, {count} iothreads: IOPS that the patch may cost", 100 * (1 - low), "%",
                  100 * MARGIN, "max")
        )  # fmt: skip
    return held
