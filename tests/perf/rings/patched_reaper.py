"""What a reaper inside QEMU does for a guest that migrates, beside vmtune's from outside.

As in ``tests.perf.rings.reaper``: one vCPU writes to every page of 256 MiB over and over, while a
migration that is held at 40 MB/s runs for 12 s and is then cancelled. All arms run the QEMU that
``make qemu-patched`` builds: a bitmap; a ring of 65536 with QEMU's own second; the same with the
patch's policies ``fixed`` at 50 ms, ``levels`` and ``aimd``; and with vmtune's reaper from outside.
Each block runs all arms once, in shuffled order. In all arms with a ring the patch's counter of
ring-full exits is held against QEMU's trace.

    python -m tests.perf.rings.patched_reaper [BLOCKS [SECONDS]]
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tests.perf.pools.pool_model import Monitor
from tests.perf.report import Check, environment, finish, spread
from tests.perf.rings.reaper import BLOCKS, CAVEAT, LASTS_S, RING, Metrics, ratios, scenario, states
from tests.perf.support import folder
from tests.support.qemus.patched_build import OBJECT, TYPE, patched
from vmtune.bench.migration.order import DirectTestbed, Phase, RunOrder, RunProgress
from vmtune.bench.migration.qemu_stderr import RING_FULL
from vmtune.bench.migration.runner import run_migration
from vmtune.bench.reduce import reduce
from vmtune.lab.domain_xml import kvm_usable
from vmtune.model.tunables.tunable import Value

SEED = 20261122
FIXED_US = 50_000
FULL, TRACED, OFF = "ring-full-exits", "ring_full_exits", "ring_full_exits_off"
COUNTERS = (FULL, "reaper-rounds", "pages-reaped")
SETTLES_S = 3  # of cooling down, in which the counters are read
LOOK_EVERY_S = 0.01
PATIENCE_S = 10


@dataclass(frozen=True)
class Arm:
    """What is set of vmtune's, and of the object x-vmtune."""

    values: Mapping[str, Value]
    inside: Mapping[str, str | int]


ARMS: Mapping[str, Arm] = {
    "bitmap": Arm({}, {}),
    "stock": Arm(RING, {}),
    "fixed": Arm(RING, {"reaper-policy": "fixed", "reaper-interval-min": FIXED_US}),
    "levels": Arm(RING, {"reaper-policy": "levels"}),
    "aimd": Arm(RING, {"reaper-policy": "aimd"}),
    "outside": Arm({**RING, "reaper_policy": "predict"}, {}),
}
REAPED = ("fixed", "levels", "aimd", "outside")
SHOWN = ("guest_write_mib_per_s", TRACED, OFF, *COUNTERS, "source_cpu_ms")


def wrapper(at: Path, program: str) -> Path:
    """The QEMU with one more monitor at the source, for the object and its counters."""
    script = at / "qemu"
    script.write_text(
        "#!/bin/sh\n"
        f'case " $* " in *" -incoming "*) exec {program} "$@" ;; esac\n'
        f'exec {program} "$@" -qmp unix:{at}/more.sock,server=on,wait=off\n'
    )
    script.chmod(0o755)
    return script


class Inside:
    """Sets the object in warm-up, and reads its counters when the migration ends.

    Exits go on when the trace of them has been switched off, by the ten thousand a second where
    a ring has filled. So the counter is read often around that moment: what the trace has counted
    is to lie between what was counted before it and after it.
    """

    def __init__(self, socket: Path, arm: Arm, lasts_s: int) -> None:
        self._socket = socket
        self._arm = arm
        self._lasts_s = lasts_s
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._begun = self._over = False
        self.counted: Mapping[str, int] = {}
        self.full_within = (0, 0)

    def progress(self, progress: RunProgress) -> None:
        """Called by the run, in every phase several times."""
        if progress.phase is Phase.WARM_UP and not self._begun:
            self._begun = True
            with Monitor(self._socket) as monitor:
                monitor.execute("object-add", **{"qom-type": TYPE, "id": "vmtune"})
                for name, value in self._arm.inside.items():
                    monitor.execute("qom-set", path=OBJECT, property=name, value=value)
            self._thread.start()
        elif progress.phase is Phase.COOL_DOWN and not self._over:
            self._over = True
            self._thread.join(PATIENCE_S)

    def _watch(self) -> None:
        with Monitor(self._socket) as monitor:
            before = {name: self._read(monitor, name) for name in COUNTERS}
            if self._arm.values:
                full = self._when_untraced(monitor)
                self.full_within = (full[0] - before[FULL], full[1] - before[FULL])
            else:
                while not self._over:
                    time.sleep(LOOK_EVERY_S)
            self.counted = {name: self._read(monitor, name) - before[name] for name in COUNTERS}

    def _when_untraced(self, monitor: Monitor) -> tuple[int, int]:
        """The exits counted just before and just after the trace was switched off."""
        while not self._traced(monitor):
            time.sleep(LOOK_EVERY_S)
        time.sleep(max(0, self._lasts_s - 1))
        before = self._read(monitor, FULL)
        while self._traced(monitor):
            before = self._read(monitor, FULL)
            time.sleep(LOOK_EVERY_S)
        return before, self._read(monitor, FULL)

    def _traced(self, monitor: Monitor) -> bool:
        (event,) = monitor.execute("trace-event-get-state", name=RING_FULL)
        return bool(event["state"] == "enabled")

    def _read(self, monitor: Monitor, name: str) -> int:
        return int(monitor.execute("qom-get", path=OBJECT, property=name))


def measure(arm: str, at: Path, program: str, lasts_s: int) -> Metrics:
    """One run."""
    asked = replace(scenario(ARMS[arm].values), cooldown_s=SETTLES_S, max_seconds=lasts_s)
    inside = Inside(at / "more.sock", ARMS[arm], lasts_s)
    testbed = DirectTestbed(qemu=wrapper(at, program), folder=at / "bench")
    order = RunOrder(asked, testbed=testbed, kvm=True)
    result = asyncio.run(run_migration(order, inside.progress))
    assert result.state in states(arm), f"{result.state}: {result.failure}"
    assert inside.counted, "the counters were not read"
    (at / "more.sock").unlink()
    found = {**reduce(result.record, result.state, asked.values), **inside.counted}
    if TRACED in found:
        least, most = inside.full_within
        found[OFF] = max(0.0, least - found[TRACED], found[TRACED] - most)
    return found


def run(blocks: int, at: Path, program: str, lasts_s: int) -> dict[str, list[Metrics]]:
    """Each arm's metrics, a block after the other; one run is thrown away."""
    chance = random.Random(SEED)
    found: dict[str, list[Metrics]] = {arm: [] for arm in ARMS}
    measure("bitmap", at, program, lasts_s)
    for block in range(blocks):
        arms = list(ARMS)
        chance.shuffle(arms)
        for arm in arms:
            found[arm].append(measure(arm, at, program, lasts_s))
            rate = found[arm][-1]["guest_write_mib_per_s"]
            print(f"block {block + 1} of {blocks}: {arm:8} {rate:8.0f} MiB/s", flush=True)
    return found


def disagreement(found: Mapping[str, list[Metrics]]) -> float:
    """By how many percent the counter is off the trace, at most over the runs with any exits."""
    rows = [row for rows in found.values() for row in rows if row.get(TRACED)]
    return max((100 * row[OFF] / row[TRACED] for row in rows), default=0.0)


def checks(found: dict[str, list[Metrics]]) -> list[Check]:
    """The bars, by medians over the blocks; of the counter, by the worst run."""
    rows = [row for arm in REAPED for row in found[arm] if not row[TRACED]]
    untraced = sum(row[FULL] for row in rows)
    return [
        *(
            Check(
                f"{arm}: guest's progress by bitmap's",
                statistics.median(ratios(found, arm, "guest_write_mib_per_s")),
                "times", 0.9, "min",
            )
            for arm in REAPED
        ),
        Check("counter of ring-full exits off the trace", disagreement(found), "%", 1, "max"),
        Check("exits counted where the trace has none", untraced, "", 0, "max"),
    ]  # fmt: skip


def show(found: dict[str, list[Metrics]]) -> None:
    """The table."""
    print()
    print(f"{'arm':8}{'by bitmap':>24}" + "".join(f"{name:>36}" for name in SHOWN))
    for arm, rows in found.items():
        cells = [f"{spread([100 * x for x in ratios(found, arm, SHOWN[0])])} %"]
        for name in SHOWN:
            values = [row[name] for row in rows if name in row]
            cells.append(spread(values) if values else "-")
        print(f"{arm:8}{cells[0]:>24}" + "".join(f"{cell:>36}" for cell in cells[1:]))
    print(CAVEAT)


def main() -> None:
    """Measure and report."""
    build = patched()
    where = environment()
    no_kvm = "" if kvm_usable() else "this machine has no usable /dev/kvm, and the ring is KVM's"
    for why in (build.why_not, no_kvm):
        if why:
            print(why)
            finish("patched_reaper", [], {"skipped": why}, where)
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS
    lasts_s = int(sys.argv[2]) if len(sys.argv) > 2 else LASTS_S
    with folder() as at:
        found = run(blocks, at, build.program, lasts_s)
    show(found)
    finish("patched_reaper", checks(found), {"blocks": blocks, "arms": found}, where)


if __name__ == "__main__":
    main()
