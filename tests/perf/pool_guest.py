"""The patched QEMU's coroutine pool under I/O of a guest: what the patch costs, and shrinking.

The project's guest loads four virtio-blk disks on null-co nodes: 16 jobs, each with a depth of 64,
random reads and writes of 4 KiB.

What the patch costs: IOPS with the disks on 4, 2 and 1 iothreads, by the patched QEMU without its
object and by the same build without the patch, in randomised blocks, compared by the comparison
engine with a margin of 1 %.

The tables of the source that resizes the pool, on 4 iothreads with nodes that answer after a
millisecond, so that 1,024 requests are under way. Memory: 10 s of load, then rest, with the pool
never resized and resized every 15 s; maps, VSZ and RSS before, during and after. IOPS: 5 s of load
with the pool limited to 64 coroutines, as before the source's change, and not at all, in blocks.

Each measurement is kept in pool_guest.jsonl of the folder that RESULTS names, if it does, and a
second run with it measures only what is not there, of the same builds. A block of what the patch
costs is two runs for each number of iothreads, of 6 s of load besides their boots. More blocks can
be asked for later: those before are the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.perf.kept import Kept
from tests.perf.pool_model import Monitor
from tests.perf.report import Check, spread
from tests.perf.support import folder
from tests.support.patched_build import OBJECT, TYPE
from tests.support.qemu import Build
from vmtune.bench.block.disks_line import DiskFiles, disks_line
from vmtune.bench.block.disks_run import run_disks
from vmtune.bench.block.guest_console import guest_console
from vmtune.bench.block.order import BlockOrder
from vmtune.bench.block.reduce import reduce_block
from vmtune.bench.migration.direct_stage import guest_program
from vmtune.bench.migration.order import DirectTestbed
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.block import BlockScenario
from vmtune.bench.model.scenario.guest_driver import GuestDriver
from vmtune.bench.model.scenario.matrix_cells import BlockCell, IoPattern, NodeKind
from vmtune.bench.qemu_process import DIES_WITH_PARENT
from vmtune.hypervisor.linux.qemu_process import QemuProcess
from vmtune.lab.domain_xml import kvm_usable
from vmtune.stats.compare import Comparison, Contrast, compare_many
from vmtune.stats.model import Criterion, Direction, Observation, Sample
from vmtune.stats.schedule import schedule

IOTHREADS = (4, 2, 1)
"""The first is the one that is to decide: a comparison's others are secondary."""
DISKS = 4
JOBS = 16
DEPTH = 64
LOAD_S = 5
MEMORY_LOAD_S = 10
LATENCY_NS = 1_000_000
BLOCKS = 60
"""Of what the patch costs: 1 % is to be seen; where runs of one arm vary by 2 %, that takes 50."""
LIMITS: Mapping[str, int] = {"before": 64, "after": 16_384}
"""Of the pool, by the arms of the source: more than are ever under way is no limit."""
SEED = 20261126
MARGIN = 0.01
PERIOD_S = 15
BACK_WITHIN_S = 35
BACK_TO = 1.1  # times the maps before
LOOK_EVERY_S = 0.25
PATIENCE_S = 120
PATCHED, UNPATCHED = "patched", "unpatched"


@dataclass(frozen=True)
class GuestLook:
    """One look at QEMU's memory."""

    maps: int
    vsz_kib: int
    rss_kib: int


@dataclass(frozen=True)
class GuestMemory:
    """A QEMU before, during and after its guest's load.

    :param most: the largest of each figure during the load.
    :param back_s: how long after the load the maps were at most 1.1 times those before; None where
        they never were.
    :param iops: of the load.
    :param created: coroutines, since QEMU started.
    """

    before: GuestLook
    most: GuestLook
    after: GuestLook
    back_s: float | None
    iops: float
    created: int


def scenario(iothreads: int, seconds: int) -> BlockScenario:
    """The load."""
    cell = BlockCell(
        NodeKind.NULL, IoPattern.RANDRW, 4096, DEPTH, JOBS, disks=DISKS, iothreads=iothreads
    )
    return BlockScenario(cell, runtime_s=seconds, ramp_s=1, driver=GuestDriver())


def iops(build: Build, iothreads: int, seconds: int, at: Path) -> Mapping[str, float]:
    """One run's metrics."""
    load = scenario(iothreads, seconds)
    assert load.driver is not None
    testbed = DirectTestbed(Path(build.program), folder=at / "bench")
    order = BlockOrder(load, testbed=testbed, scratch=at / "scratch", kvm=kvm_usable())
    done = asyncio.run(run_disks(order, load.driver, lambda _: None))
    assert done.state is RunState.COMPLETED, done.failure
    return reduce_block(done.record)


def by_iothreads(
    builds: Mapping[str, Build], iothreads: Sequence[int], blocks: int, seconds: int, kept: Kept
) -> dict[int, dict[str, list[dict[str, float]]]]:
    """Each number's, and arm's, runs."""
    found: dict[int, dict[str, list[dict[str, float]]]] = {
        count: {arm: [] for arm in builds} for count in iothreads
    }
    conditions = [str(count) for count in iothreads]
    for slot in schedule(tuple(builds), blocks, SEED, conditions=conditions):
        count = int(slot.condition)

        def measure(build: Build = builds[slot.arm], count: int = count) -> Mapping[str, float]:
            with folder() as at:
                return iops(build, count, seconds, at)

        if slot.warm_up:
            measure()
            continue
        metrics = kept.once(f"cost {seconds} s {slot.block} {count} {slot.arm}", measure)
        found[count][slot.arm].append({"block": slot.block or 0, **metrics})
        print(f"block {slot.block} of {blocks}: {count} iothreads, {slot.arm:10}"
              f"{metrics['iops']:9.0f} IOPS", flush=True)  # fmt: skip
    return found


def compared(
    found: Mapping[int, Mapping[str, Sequence[Mapping[str, float]]]],
) -> dict[int, Comparison]:
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


def show(
    found: Mapping[int, Mapping[str, Sequence[Mapping[str, float]]]],
    comparisons: Mapping[int, Comparison],
) -> list[dict[str, Any]]:
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


async def _loaded(
    build: Build, settings: Mapping[str, int], load_s: int, rest_s: int, at: Path
) -> GuestMemory:
    """The load with these properties of the object set before, and a rest after it."""
    load = scenario(max(IOTHREADS), load_s)
    assert load.driver is not None
    kernel, own = at / "guest.elf", at / "own"
    await asyncio.to_thread(lambda: kernel.write_bytes(guest_program()))
    files = DiskFiles(Path(build.program), None, kernel, at, at / "qmp", own)
    line = disks_line(files, load, load.driver, uuid4(), kvm=kvm_usable())
    line = [word.replace("read-zeroes=on", f"read-zeroes=on,latency-ns={LATENCY_NS}")
            for word in line]  # fmt: skip
    async with guest_console(at, lambda: time.monotonic() * 1000) as console:
        process = await asyncio.create_subprocess_exec(*DIES_WITH_PARENT, *line)
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not own.exists():
                    assert process.returncode is None, "QEMU has ended"
                    await asyncio.sleep(LOOK_EVERY_S)
            with Monitor(own) as monitor:
                monitor.execute("object-add", **{"qom-type": TYPE, "id": "vmtune"})
                for name, value in settings.items():
                    monitor.execute("qom-set", path=OBJECT, property=name, value=value)
                looked = QemuProcess(process.pid)
                before = most = _look(looked)
                monitor.execute("cont")
                async with asyncio.timeout(PATIENCE_S + load_s):
                    while not console.ended:
                        now = _look(looked)
                        most = GuestLook(
                            *(max(a, b) for a, b in zip(astuple(most), astuple(now), strict=True))
                        )
                        await console.wait(LOOK_EVERY_S)
                assert console.fault is None, console.fault
                ended = time.monotonic()
                monitor.execute("stop")  # a guest that has done its work polls on
                back_s, after = None, _look(looked)
                while time.monotonic() - ended < rest_s:
                    await asyncio.sleep(LOOK_EVERY_S)
                    after = _look(looked)
                    if back_s is None and after.maps <= BACK_TO * before.maps:
                        back_s = time.monotonic() - ended
                created = int(
                    monitor.execute("qom-get", path=OBJECT, property="coroutines-created")
                )
            result = console.report.result()
            assert result is not None
            return GuestMemory(before, most, after, back_s, result.iops, created)
        finally:
            process.kill()
            await process.wait()


def _look(process: QemuProcess) -> GuestLook:
    maps, memory = process.maps(), process.memory_bytes()
    assert maps is not None and memory is not None, "QEMU has ended"
    return GuestLook(maps.total, memory[0] // 1024, memory[1] // 1024)


def _read(row: Mapping[str, Any]) -> GuestMemory:
    looks = {name: GuestLook(**row[name]) for name in ("before", "most", "after")}
    return GuestMemory(**{**row, **looks})


def memory(build: Build, load_s: int, rest_s: int, kept: Kept) -> dict[str, GuestMemory]:
    """With the pool never resized, and resized."""
    found = {}
    for arm, period_s in (("never", 0), (f"every {PERIOD_S} s", PERIOD_S)):

        def measure(period_s: int = period_s) -> dict[str, Any]:
            with folder() as at:
                settings = {"pool-resize-period": period_s}
                return asdict(asyncio.run(_loaded(build, settings, load_s, rest_s, at)))

        found[arm] = _read(kept.once(f"memory {load_s} s {rest_s} s {arm}", measure))
    return found


def by_limit(
    build: Build, blocks: int, seconds: int, kept: Kept
) -> dict[str, list[dict[str, float]]]:
    """Each arm's runs with the pool limited as before the source's change, and not."""
    found: dict[str, list[dict[str, float]]] = {arm: [] for arm in LIMITS}
    for slot in schedule(tuple(LIMITS), blocks, SEED):

        def measure(limit: int = LIMITS[slot.arm]) -> dict[str, Any]:
            with folder() as at:
                settings = {"pool-hard-limit": limit}
                return asdict(asyncio.run(_loaded(build, settings, seconds, 0, at)))

        if slot.warm_up:
            measure()
            continue
        seen = _read(kept.once(f"limit {seconds} s {slot.block} {slot.arm}", measure))
        found[slot.arm].append(
            {"block": slot.block or 0, "iops": seen.iops, "created": seen.created}
        )
        print(f"block {slot.block} of {blocks}: {slot.arm:10}{seen.iops:9.0f} IOPS, "
              f"{seen.created} coroutines created", flush=True)  # fmt: skip
    return found


def show_limits(found: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, Any]:
    """The source's table of IOPS, with the verdict."""
    before, after = (
        Sample(arm, tuple(Observation(row["iops"], block=int(row["block"])) for row in found[arm]))
        for arm in LIMITS
    )
    criterion = Criterion("iops", Direction.HIGHER, unit="1/s", primary=True)
    (comparison,) = compare_many([Contrast(before, after, criterion)])
    print(f"\n{'pool':10}{'IOPS':>32}{'coroutines created':>32}")
    for arm, rows in found.items():
        cells = [spread([row[name] for row in rows]) for name in ("iops", "created")]
        print(f"{arm:10}{cells[0]:>32}{cells[1]:>32}")
    print(f"after by before: {comparison.verdict}: {comparison.reason}")
    effect = comparison.effect
    return {
        "verdict": comparison.verdict,
        "reason": comparison.reason,
        "ratio": effect and [effect.estimate, effect.low, effect.high],
    }


def show_memory(arms: Mapping[str, GuestMemory]) -> None:
    """The table of memory."""
    print(f"\n{'pool resized':14}{'phase':8}{'maps':>7}{'VSZ KiB':>12}{'RSS KiB':>10}"
          "  by a guest's I/O")  # fmt: skip
    for arm, seen in arms.items():
        for phase, look in (("before", seen.before), ("during", seen.most), ("after", seen.after)):
            print(f"{arm:14}{phase:8}{look.maps:>7}{look.vsz_kib:>12,}{look.rss_kib:>10,}")
        back = "never" if seen.back_s is None else f"{seen.back_s:.0f} s after the load"
        print(f"{'':14}back to {BACK_TO:g} times the maps before: {back}")


def checks(arms: Mapping[str, GuestMemory], comparisons: Mapping[int, Comparison]) -> list[Check]:
    """The bars: a comparison that is not certain enough of at most 1 % does not hold it."""
    resized = arms[f"every {PERIOD_S} s"]
    back = 1e9 if resized.back_s is None else resized.back_s
    held = [
        Check("guest, resized: maps after by before",
              resized.after.maps / resized.before.maps, "times", BACK_TO, "max"),
        Check("guest, resized: back after the load", back, "s", BACK_WITHIN_S, "max"),
    ]  # fmt: skip
    for count, comparison in comparisons.items():
        effect = comparison.effect
        low = effect.low if effect is not None and effect.low is not None else 0.0
        held.append(
            Check(f"guest, {count} iothreads: IOPS that the patch may cost", 100 * (1 - low), "%",
                  100 * MARGIN, "max")
        )  # fmt: skip
    return held


def measure(
    builds: Mapping[str, Build],
    iothreads: Sequence[int],
    blocks: int,
    limit_blocks: int,
    rest_s: int,
    kept: Kept,
) -> tuple[list[Check], dict[str, Any]]:
    """All of it: the checks, and the raw values. Without an unpatched build no costs."""
    arms = memory(builds[PATCHED], MEMORY_LOAD_S, rest_s, kept)
    show_memory(arms)
    limits = by_limit(builds[PATCHED], limit_blocks, LOAD_S, kept)
    raw: dict[str, Any] = {
        "memory": {arm: asdict(seen) for arm, seen in arms.items()},
        "limits": limits,
        "limits_verdict": show_limits(limits),
    }
    why_not = builds[UNPATCHED].why_not
    if why_not:
        print(why_not)
        return checks(arms, {}), {**raw, "iops_skipped": why_not}
    found = by_iothreads(builds, iothreads, blocks, LOAD_S, kept)
    comparisons = compared(found)
    verdicts = show(found, comparisons)
    return checks(arms, comparisons), {**raw, "iops": found, "verdicts": verdicts}
