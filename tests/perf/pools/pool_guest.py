"""The patched QEMU's coroutine pool under I/O of a guest: shrinking, and a limit.

The project's guest loads four virtio-blk disks on null-co nodes: 16 jobs, each with a depth of 64,
random reads and writes of 4 KiB. The tables of the source that resizes the pool, on 4 iothreads
with nodes that answer after a millisecond, so that 1,024 requests are under way. Memory: 10 s of
load, then rest, with the pool never resized and resized every 15 s; maps, VSZ and RSS before,
during and after. IOPS: 5 s of load with the pool limited to 64 coroutines, as before the source's
change, and not at all, in blocks. What the patch costs without its object is in
tests/perf/pools/pool_cost.py.

Each measurement is kept in pool_guest.jsonl of the folder that RESULTS names, if it does, and a
second run with it measures only what is not there, of the same builds. More blocks can be asked for
later: those before are the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

from tests.perf.kept import Kept
from tests.perf.pools import pool_cost
from tests.perf.pools.loaded_qemu import LOOK_EVERY_S, PATIENCE_S, loaded_qemu
from tests.perf.report import Check, spread
from tests.perf.support import folder
from tests.support.qemus.patched_build import OBJECT, TYPE
from tests.support.qemus.qemu import Build
from vmtune.hypervisor.linux.qemu_process import QemuProcess
from vmtune.stats.compare import Contrast, compare_many
from vmtune.stats.model import Criterion, Direction, Observation, Sample
from vmtune.stats.schedule import schedule

LOAD_S = 5
MEMORY_LOAD_S = 10
LATENCY_NS = 1_000_000
LIMITS: Mapping[str, int] = {"before": 64, "after": 16_384}
"""Of the pool, by the arms of the source: more than are ever under way is no limit."""
SEED = 20261126
PERIOD_S = 15
BACK_WITHIN_S = 35
BACK_TO = 1.1  # times the maps before


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


async def _loaded(
    build: Build, settings: Mapping[str, int], load_s: int, rest_s: int, at: Path
) -> GuestMemory:
    """The load with these properties of the object set before, and a rest after it."""
    iothreads = max(pool_cost.IOTHREADS)
    async with loaded_qemu(build, iothreads, load_s, at, LATENCY_NS) as qemu:
        monitor, console = qemu.monitor, qemu.console
        monitor.execute("object-add", **{"qom-type": TYPE, "id": "vmtune"})
        for name, value in settings.items():
            monitor.execute("qom-set", path=OBJECT, property=name, value=value)
        looked = QemuProcess(qemu.pid)
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
        created = int(monitor.execute("qom-get", path=OBJECT, property="coroutines-created"))
    result = console.report.result()
    assert result is not None
    return GuestMemory(before, most, after, back_s, result.iops, created)


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


def checks(arms: Mapping[str, GuestMemory]) -> list[Check]:
    """The bars of the memory."""
    resized = arms[f"every {PERIOD_S} s"]
    back = 1e9 if resized.back_s is None else resized.back_s
    return [
        Check("guest, resized: maps after by before",
              resized.after.maps / resized.before.maps, "times", BACK_TO, "max"),
        Check("guest, resized: back after the load", back, "s", BACK_WITHIN_S, "max"),
    ]  # fmt: skip


def measure(
    builds: Mapping[str, Build],
    iothreads: Sequence[int],
    blocks: int,
    limit_blocks: int,
    rest_s: int,
    kept: Kept,
) -> tuple[list[Check], dict[str, Any]]:
    """All of it: the checks, and the raw values. Without an unpatched build no costs."""
    arms = memory(builds[pool_cost.PATCHED], MEMORY_LOAD_S, rest_s, kept)
    show_memory(arms)
    limits = by_limit(builds[pool_cost.PATCHED], limit_blocks, LOAD_S, kept)
    raw: dict[str, Any] = {
        "memory": {arm: asdict(seen) for arm, seen in arms.items()},
        "limits": limits,
        "limits_verdict": show_limits(limits),
    }
    why_not = builds[pool_cost.UNPATCHED].why_not
    if why_not:
        print(why_not)
        return checks(arms), {**raw, "iops_skipped": why_not}
    found = pool_cost.by_iothreads(builds, iothreads, blocks, kept)
    comparisons = pool_cost.compared(found)
    verdicts = pool_cost.show(found, comparisons)
    held = [*checks(arms), *pool_cost.checks(comparisons)]
    return held, {**raw, "iops": found, "verdicts": verdicts}
