"""Which guests live through a migration with a dirty ring, by who empties it, ring and vCPUs.

Since Linux 6.16 the kernel empties a ring only in part when a signal is pending, and QEMU aborts
when it does (docs/explanation/dirty-ring.md): then a guest dies where a ring fills. A guest writes
over and over, while a migration held at 40 MB/s runs for 2 s and is then cancelled; a QEMU that
ends by itself counts as a death. Each block runs its arms once, in shuffled order. Three blocks in
a row have 1, 2 and 4 vCPUs, which write to 256 MiB together; in the next three each vCPU writes to
320 MiB, in the processor's ring 3, where some nested KVMs are a hundred times as fast. ``predict``
at 65,536 entries is what vmtune chooses; QEMU's own reaper at the same ring stands beside it in
every other six blocks, the other arms in the first six. Where ``make qemu-patched`` has built a
QEMU, it runs as well, its rings unreaped and reaped inside.

A death takes a signal in the moment when a vCPU empties its own full ring, which depends on what
else the machine does. So both compared arms, and the patched QEMU's unreaped rings, run once more
in every twelfth block, with each vCPU of the source kicked all the time by the signal that QEMU
itself uses: then most full rings are deaths.

Each run is appended to ring_survival.jsonl in the folder RESULTS, if it is named, as it ends; a
second call with it goes on where the first was stopped.

    python -m tests.perf.rings.ring_survival [BLOCKS [RESULTS]]
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import random
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from scipy.stats import binomtest

from tests.perf.report import Check, environment, finish
from tests.perf.rings.patched_reaper import Arm as InsideArm
from tests.perf.rings.patched_reaper import Inside, wrapper
from tests.perf.support import folder
from tests.support.qemus.patched_build import patched
from vmtune.bench.migration.order import DEFAULT_QEMU, DirectTestbed, RunOrder
from vmtune.bench.migration.runner import run_migration
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.migration import Scenario, VmShape
from vmtune.bench.model.scenario.parts import MIB
from vmtune.errors import VmtuneError
from vmtune.lab.domain_xml import kvm_usable
from vmtune.model.workload import Workload

BLOCKS = 200
SEED = 20261123
VCPUS = (1, 2, 4)
RINGS = (4096, 16384, 65536)
LARGEST = 65536
CPU_RINGS = (0, 3)
TOGETHER_MIB, EACH_MIB = 256, 320
"""What all vCPUs together, or each, write to: more pages than the largest ring has entries."""
LASTS_S = 2
HELD_BYTES_PER_S = 40_000_000
ALL_ARMS_IN = 6
"""The first blocks, one of each kind, have all arms; the others those that are compared."""
KICKED_EACH = 12
"""In one of so many blocks, another kind each time, vCPUs are kicked as well."""
NEEDED_RUNS = 200
_TGKILL, _SIG_IPI, _KICKS_EVERY_S = 234, signal.SIGUSR1, 100e-6
ABORTS = "ret == total"
"""QEMU's assertion (accel/kvm/kvm-all.c, kvm_dirty_ring_reap_locked)."""


@dataclass(frozen=True)
class Arm:
    """Who empties the rings.

    :param reaper: vmtune's policy, ``off`` for none.
    :param inside: of the patched QEMU's object; None for the QEMU that is installed.
    :param kicked: the source's vCPUs get a signal all the time.
    """

    name: str
    entries: int
    reaper: str = "off"
    inside: str | None = None
    kicked: bool = False


CHOICE = Arm("predict", LARGEST, "predict")
STOCK = Arm("stock", LARGEST)
COMPARED = (CHOICE, STOCK)
KICKED = (
    Arm("predict, kicked", LARGEST, "predict", kicked=True),
    Arm("stock, kicked", LARGEST, kicked=True),
)
OTHERS = tuple(
    arm
    for entries in RINGS
    for arm in (
        Arm("stock", entries),
        *(Arm(policy, entries, policy) for policy in ("predict", "levels", "aimd")),
    )
    if arm not in COMPARED
)
PATCHED = (
    Arm("patched, stock", LARGEST, inside="stock"),
    Arm("patched, levels", LARGEST, inside="levels"),
    Arm("patched, stock", 4096, inside="stock"),
)
PATCHED_KICKED = (Arm("patched, stock, kicked", LARGEST, inside="stock", kicked=True),)


@dataclass(frozen=True)
class Ran:
    """One run.

    :param failed: why it failed, with both QEMUs' last words; empty where it did not.
    :param full: exits of vCPUs for full rings; None where they were not counted.
    :param filled: rounds of vmtune's reaper that found a ring full; *rounds* of all.
    """

    block: int
    arm: str
    entries: int
    vcpus: int
    cpu_ring: int
    failed: str
    full: int | None
    rounds: int = 0
    filled: int = 0
    fullest: float = 0.0

    @property
    def died(self) -> bool:
        """Whether QEMU aborted. A migration that fails otherwise is no death."""
        return ABORTS in self.failed


def scenario(arm: Arm, vcpus: int, cpu_ring: int) -> Scenario:
    """An arm's scenario."""
    region_mib = EACH_MIB * vcpus if cpu_ring else TOGETHER_MIB
    return Scenario(
        "perf/ring-survival",
        vm=VmShape((region_mib + 128) * MIB, vcpus),
        workload=Workload(region_mib * MIB, beat_ms=5, cpu_ring=cpu_ring),
        values={
            "max_bandwidth_bytes_per_s": HELD_BYTES_PER_S,
            "dirty_ring_size_entries": arm.entries,
            "reaper_policy": arm.reaper,
        },
        warmup_s=1,
        cooldown_s=0 if arm.inside is None else 1,
        max_seconds=LASTS_S,
        max_iterations=10_000,
        count_ring_full=True,
    )


def measure(block: int, arm: Arm, at: Path, program: str) -> Ran:
    """One run. A QEMU that dies is a result."""
    vcpus, cpu_ring = VCPUS[block % len(VCPUS)], CPU_RINGS[block // len(VCPUS) % len(CPU_RINGS)]
    qemu, inside = DEFAULT_QEMU, None
    if arm.inside is not None:
        qemu = wrapper(at, program)
        inside = Inside(at / "more.sock", InsideArm({}, {"reaper-policy": arm.inside}), LASTS_S)
    order = RunOrder(
        scenario(arm, vcpus, cpu_ring),
        testbed=DirectTestbed(qemu=qemu, folder=at / "bench"),
        kvm=True,
    )
    try:
        with kicking(at / "bench") if arm.kicked else nullcontext():
            result = asyncio.run(
                run_migration(order, inside.progress if inside is not None else lambda _: None)
            )
    finally:
        (at / "more.sock").unlink(missing_ok=True)
    failed = result.failure if result.state is RunState.FAILED else ""
    report = result.record.reaper
    return Ran(
        block, arm.name, arm.entries, vcpus, cpu_ring, failed,
        result.record.ring_full_exits,
        *((report.round_count, report.filled_rounds, report.fullest) if report else ()),
    )  # fmt: skip


@contextmanager
def kicking(folder: Path) -> Iterator[None]:
    """Kick the vCPUs of the source of a run in *folder* from when it is there to its end."""
    over = threading.Event()

    def kick() -> None:
        threads: list[tuple[int, int]] = []
        while not over.wait(_KICKS_EVERY_S if threads else 0.05):
            threads = threads or vcpus(folder)
            for process, thread in threads:
                ctypes.CDLL(None).syscall(_TGKILL, process, thread, _SIG_IPI)

    kicker = threading.Thread(target=kick, daemon=True)
    kicker.start()
    try:
        yield
    finally:
        over.set()
        kicker.join()


def vcpus(folder: Path) -> list[tuple[int, int]]:
    """The source's process and each of its vCPUs' threads; none before they are all there."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_text().split("\0")
            if "-incoming" in words or not any(str(folder) in word for word in words):
                continue
            for thread in (process / "task").iterdir():
                if (thread / "comm").read_text().strip().endswith("/KVM"):
                    found.append((int(process.name), int(thread.name)))
    return found


def planned(blocks: int, with_patched: bool) -> Iterator[tuple[int, Arm]]:
    """Block and arm of every run, in the order in which they run."""
    chance = random.Random(SEED)
    for block in range(blocks):
        arms = [CHOICE] if block // ALL_ARMS_IN % 2 else [*COMPARED]
        if block % KICKED_EACH == block // KICKED_EACH % KICKED_EACH:
            arms += KICKED + (PATCHED_KICKED if with_patched else ())
        if block < ALL_ARMS_IN:
            arms += OTHERS + (PATCHED if with_patched else ())
        chance.shuffle(arms)
        for arm in arms:
            yield block, arm


def run(blocks: int, at: Path, program: str, results: Path | None) -> list[Ran]:
    """All runs; those in *results* are not run again."""
    found: list[Ran] = []
    if results is not None and results.exists():
        found = [Ran(**json.loads(line)) for line in results.read_text().splitlines()]
    have = {(ran.block, ran.arm, ran.entries) for ran in found}
    for block, arm in planned(blocks, bool(program)):
        if (block, arm.name, arm.entries) in have:
            continue
        try:
            ran = measure(block, arm, at, program)
        except VmtuneError as error:
            print(f"block {block + 1}: {arm.name} could not be run: {error}", flush=True)
            continue
        found.append(ran)
        if results is not None:
            with results.open("a") as file:
                file.write(json.dumps(asdict(ran)) + "\n")
        words = "died" if ran.died else f"failed: {ran.failed[:90]}" if ran.failed else "lived"
        where = f"{arm.name:22} {arm.entries:6} entries, {ran.vcpus} vCPUs, ring {ran.cpu_ring}"
        print(f"block {block + 1} of {blocks}: {where}: {words}; {ran.full} full", flush=True)
    return found


def rows(found: list[Ran]) -> Mapping[tuple[str, int, int], list[Ran]]:
    """By arm, entries and vCPUs; 0 vCPUs is all together."""
    made: dict[tuple[str, int, int], list[Ran]] = {}
    for ran in found:
        for vcpus in (0, ran.vcpus):
            made.setdefault((ran.arm, ran.entries, vcpus), []).append(ran)
    return dict(sorted(made.items()))


def interval(deaths: int, runs: int) -> tuple[float, float]:
    """The share of deaths, 95 % bounds by Clopper and Pearson, in percent."""
    bounds = binomtest(deaths, runs).proportion_ci(method="exact")
    return 100 * float(bounds.low), 100 * float(bounds.high)


def show(found: list[Ran]) -> None:
    """The table."""
    print(f"\n{'arm':24}{'entries':>8}{'vCPUs':>6}{'died':>12}{'95 % bounds':>18}"
          f"{'full exits':>22}{'runs with any':>15}")  # fmt: skip
    for (arm, entries, vcpus), ran in rows(found).items():
        deaths = sum(one.died for one in ran)
        low, high = interval(deaths, len(ran))
        full = sorted(one.full or 0 for one in ran)
        some = sum(one.full is not None and one.full > 0 for one in ran)
        middle = f"{full[len(full) // 2]} ({full[0]} to {full[-1]})"
        print(f"{arm:24}{entries:8}{vcpus or 'all':>6}{f'{deaths} of {len(ran)}':>12}"
              f"{f'{low:.1f} to {high:.1f} %':>18}{middle:>22}{some:>15}")  # fmt: skip


def checks(found: list[Ran], blocks: int) -> list[Check]:
    """vmtune's own choice kills nobody, and its rings do not fill."""
    ours = [ran for ran in found if (ran.arm, ran.entries) == (CHOICE.name, CHOICE.entries)]
    full = sum(ran.full is not None and ran.full > 0 for ran in ours)
    return [
        Check("guests that died, vmtune's choice", sum(r.died for r in ours), "", 0, "max"),
        Check("runs with a full ring, likewise", full, "", 0, "max"),
        Check("runs of it", len(ours), "", min(blocks, NEEDED_RUNS), "min"),
    ]


def main() -> None:
    """Measure and report."""
    where = environment()
    if not kvm_usable():
        print("this machine has no usable /dev/kvm, and the dirty ring is KVM's")
        finish("ring_survival", [], {"skipped": "no usable /dev/kvm"}, where)
    build = patched()
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS
    results = Path(sys.argv[2]) / "ring_survival.jsonl" if len(sys.argv) > 2 else None
    with folder() as at:
        found = run(blocks, at, "" if build.why_not else build.program, results)
    show(found)
    raw = [asdict(ran) for ran in found]
    finish("ring_survival", checks(found, blocks), {"blocks": blocks, "runs": raw}, where)


if __name__ == "__main__":
    main()
