"""What the patched QEMU's coroutine pool does: memory after a load, and IOPS by the pool's limit.

fio loads an NBD export of a null-co node behind an iothread: 16 jobs, each with a depth of 64, of
which QEMU's NBD server has 16 under way for each connection.

Memory: 10 s of load, then 40 s of rest, with the pool never resized, as in a QEMU without the
patch, and resized every 15 s: maps, VSZ and RSS before, during and after. IOPS: 5 s of load with
the pool limited to 64, 256 and 1,024 coroutines and not at all, in randomised blocks, held against
the unlimited one by the comparison engine.

Then the same kind of load by a guest (tests/perf/pools/pool_guest.py), and what the patch costs
there (tests/perf/pools/pool_cost.py): these two alone are run with PART=guest. GUEST_BLOCKS and
IOTHREADS are those of what the patch costs, BLOCKS those of each pool's limit.

    [PART=guest] [RESULTS=FOLDER] [BLOCKS=N] [GUEST_BLOCKS=N] [IOTHREADS=4,2,1] [REST_S=N]
        python -m tests.perf.pools.patched_pool
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.perf.kept import Kept
from tests.perf.pools import pool_cost, pool_guest
from tests.perf.pools.pool_model import Monitor, exports
from tests.perf.report import Check, environment, finish, spread
from tests.perf.support import folder
from tests.support.qemus.patched_build import OBJECT, TYPE, built_of, patched, unpatched
from tests.support.qemus.qemu import Build, running
from vmtune.bench.block.fio_json import read_fio
from vmtune.hypervisor.linux.qemu_process import QemuProcess
from vmtune.stats.compare import Contrast, compare_many
from vmtune.stats.model import Criterion, Direction, Observation, Sample
from vmtune.stats.schedule import schedule

JOBS = 16
DEPTH = 64
LATENCY_NS = 1_000_000  # of the null-co node, so that requests are under way together
MEMORY_LOAD_S = 10
REST_S = 40
PERIOD_S = 15
BACK_WITHIN_S = 35
BACK_TO = 1.1  # times the maps before
IOPS_LOAD_S = 5
BLOCKS = 10
SEED = 20261122
LOOK_EVERY_S = 0.25
PATIENCE_S = 60
LIMITS: Mapping[str, int] = {"64": 64, "256": 256, "1024": 1024, "unlimited": 16_384}
"""More than are ever under way here is no limit; 0 would be QEMU's own, 128 without disks."""
MACHINE = (
    "-machine", "none", "-accel", "tcg", "-nodefaults", "-display", "none",
    "-object", "iothread,id=iothread0",
)  # fmt: skip
COUNTERS = ("coroutines-in-use", "coroutines-pooled", "coroutines-created", "coroutines-peak")


@dataclass(frozen=True)
class Look:
    """One look at the process.

    :param at_s: since the load began.
    """

    at_s: float
    maps: int
    vsz_kib: int
    rss_kib: int


@dataclass(frozen=True)
class Memory:
    """One arm's memory.

    :param back_s: how long after the load the maps were at most 1.1 times those before; None
        where they never were.
    :param counted: the object's counters at the end.
    """

    before: Look
    most: Look
    after: Look
    back_s: float | None
    counted: Mapping[str, int]


class Qemu:
    """A patched QEMU with one export, and a monitor of its own."""

    def __init__(self, pid: int, monitor: Monitor, socket: Path) -> None:
        self._process = QemuProcess(pid)
        self._monitor = monitor
        self.socket = socket

    def set(self, name: str, value: int) -> None:
        """Set one property of the object."""
        self._monitor.execute("qom-set", path=OBJECT, property=name, value=value)

    def counted(self) -> Mapping[str, int]:
        """The pool's counters."""
        return {
            name: self._monitor.execute("qom-get", path=OBJECT, property=name) for name in COUNTERS
        }

    def look(self, since: float) -> Look:
        """The process as it is now."""
        maps, memory = self._process.maps(), self._process.memory_bytes()
        assert maps is not None and memory is not None, "QEMU has ended"
        return Look(time.monotonic() - since, maps.total, memory[0] // 1024, memory[1] // 1024)


@contextmanager
def patched_qemu(build: Build, at: Path) -> Iterator[Qemu]:
    """One with the object, and an export behind its iothread."""
    more = at / "more.sock"
    extra = ("-qmp", f"unix:{more},server=on,wait=off")
    with running(build, at / "qmp", machine=MACHINE, extra=extra) as process:
        with Monitor(more) as monitor:
            monitor.execute("object-add", **{"qom-type": TYPE, "id": "vmtune"})
            with exports(process, at, ["iothread0"], LATENCY_NS) as socket:
                yield Qemu(process.pid, monitor, socket)
        assert process.process.poll() is None, process.said()


def load(socket: Path, seconds: int, export: str = "iothread0") -> subprocess.Popen[bytes]:
    """fio, for so long."""
    command = [
        "fio", "--ioengine=nbd", "--rw=randread", "--bs=4k", "--thread", f"--iodepth={DEPTH}",
        f"--numjobs={JOBS}", "--time_based", f"--runtime={seconds}", "--group_reporting",
        "--output-format=json", f"--output={socket.parent / 'fio.json'}",
        "--name=load", f"--uri=nbd+unix:///{export}?socket={socket}",
    ]  # fmt: skip
    with (socket.parent / "fio.err").open("wb") as errors:
        return subprocess.Popen(command, stdout=errors, stderr=errors, cwd=socket.parent)


def memory(build: Build, period_s: int, rest_s: int, at: Path) -> Memory:
    """Load and rest, with the pool resized so often; 0 is never."""
    with patched_qemu(build, at) as qemu:
        qemu.set("pool-resize-period", period_s)
        began = time.monotonic()
        before = qemu.look(began)
        fio = load(qemu.socket, MEMORY_LOAD_S)
        looks = []
        try:
            while fio.poll() is None:
                looks.append(qemu.look(began))
                assert looks[-1].at_s < MEMORY_LOAD_S + PATIENCE_S, "fio does not end"
                time.sleep(LOOK_EVERY_S)
        finally:
            fio.kill()
            fio.wait()
        assert fio.returncode == 0, (at / "fio.err").read_text()
        ended = time.monotonic()
        back_s, after = None, qemu.look(began)
        while time.monotonic() - ended < rest_s:
            time.sleep(LOOK_EVERY_S)
            after = qemu.look(began)
            if back_s is None and after.maps <= BACK_TO * before.maps:
                back_s = time.monotonic() - ended
        most = max(looks, key=lambda look: look.maps)
        return Memory(before, most, after, back_s, qemu.counted())


def iops(build: Build, limit: int, at: Path) -> tuple[float, Mapping[str, int]]:
    """One run's requests per second, and the pool's counters after it."""
    with patched_qemu(build, at) as qemu:
        qemu.set("pool-hard-limit", limit)
        fio = load(qemu.socket, IOPS_LOAD_S)
        try:
            fio.wait(IOPS_LOAD_S + PATIENCE_S)
        finally:
            fio.kill()
            fio.wait()
        assert fio.returncode == 0, (at / "fio.err").read_text()
        report = read_fio((at / "fio.json").read_text())
        assert not report.failed, report.messages
        return report.iops, qemu.counted()


def by_limit(build: Build, blocks: int) -> dict[str, list[dict[str, Any]]]:
    """Each arm's runs."""
    found: dict[str, list[dict[str, Any]]] = {arm: [] for arm in LIMITS}
    for slot in schedule(tuple(LIMITS), blocks, SEED):
        with folder() as at:
            rate, counted = iops(build, LIMITS[slot.arm], at)
        if not slot.warm_up:
            found[slot.arm].append({"block": slot.block, "iops": rate, **counted})
            print(f"block {slot.block} of {blocks}: {slot.arm:10}{rate:9.0f} IOPS", flush=True)
    return found


def show_memory(arms: Mapping[str, Memory]) -> None:
    """The first table."""
    print(f"{'pool resized':14}{'phase':8}{'maps':>7}{'VSZ KiB':>12}{'RSS KiB':>10}")
    for arm, seen in arms.items():
        for phase, look in (("before", seen.before), ("during", seen.most), ("after", seen.after)):
            print(f"{arm:14}{phase:8}{look.maps:>7}{look.vsz_kib:>12,}{look.rss_kib:>10,}")
        back = "never" if seen.back_s is None else f"{seen.back_s:.0f} s after the load"
        print(f"{'':14}back to {BACK_TO:g} times the maps before: {back}")


def show_iops(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """The second table, with the verdicts on each limit."""
    samples = {
        arm: Sample(arm, tuple(Observation(row["iops"], block=row["block"]) for row in rows))
        for arm, rows in found.items()
    }
    criterion = Criterion("iops", Direction.HIGHER, unit="1/s")
    limits = [arm for arm in LIMITS if arm != "unlimited"]
    contrasts = [Contrast(samples["unlimited"], samples[arm], criterion) for arm in limits]
    compared = dict(zip(limits, compare_many(contrasts), strict=True))
    print(f"\n{'limit':12}{'IOPS':>34}{'coroutines created':>34}  by unlimited")
    said = []
    for arm, rows in found.items():
        made = spread([row["coroutines-created"] for row in rows])
        comparison = compared.get(arm)
        verdict = ""
        if comparison is not None:
            effect = comparison.effect
            verdict = f"{comparison.verdict}: {comparison.reason}"
            said.append(
                {
                    "limit": arm,
                    "verdict": comparison.verdict,
                    "reason": comparison.reason,
                    "ratio": effect and [effect.estimate, effect.low, effect.high],
                }
            )
        print(f"{arm:12}{spread([row['iops'] for row in rows]):>34}{made:>34}  {verdict}")
    return said


def checks(resized: Memory, found: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Check]:
    """The bars."""
    back = float("inf") if resized.back_s is None else resized.back_s
    kept = max(
        (row["coroutines-pooled"] / LIMITS[arm] for arm, rows in found.items() for row in rows),
        default=0.0,
    )
    return [
        Check("resized: maps after by before", resized.after.maps / resized.before.maps,
              "times", BACK_TO, "max"),
        Check("resized: back after the load", min(back, 1e9), "s", BACK_WITHIN_S, "max"),
        Check("coroutines kept by the limit", kept, "times", 1, "max"),
    ]  # fmt: skip


def _number(name: str, usual: int) -> int:
    return int(os.environ.get(name) or usual)


def _results() -> Path | None:
    named = os.environ.get("RESULTS")
    return Path(named) / "pool_guest.jsonl" if named else None


def main() -> None:
    """Measure and report."""
    build = patched()
    where = environment()
    for why in (build.why_not, "" if shutil.which("fio") else "fio is not installed"):
        if why:
            print(why)
            finish("patched_pool", [], {"skipped": why}, where)
    blocks, rest_s = _number("BLOCKS", BLOCKS), _number("REST_S", REST_S)
    builds = {pool_cost.PATCHED: build, pool_cost.UNPATCHED: unpatched()}
    kept = Kept(_results(), {"builds": built_of(), "machine": [where["cpu"], where["kernel"]]})

    def by_guest() -> tuple[list[Check], dict[str, Any]]:
        guest_blocks = _number("GUEST_BLOCKS", pool_cost.BLOCKS)
        words = os.environ.get("IOTHREADS", "").split(",")
        chosen = [int(word) for word in words if word] or pool_cost.IOTHREADS
        return pool_guest.measure(builds, chosen, guest_blocks, blocks, rest_s, kept)

    if os.environ.get("PART") == "guest":
        held, guest = by_guest()
        finish("patched_pool", held, {"guest": guest}, where)
    arms = {}
    for arm, period_s in (("never", 0), (f"every {PERIOD_S} s", PERIOD_S)):
        with folder() as at:
            arms[arm] = memory(build, period_s, rest_s, at)
    show_memory(arms)
    found = by_limit(build, blocks)
    verdicts = show_iops(found)
    held, guest = by_guest()
    raw = {
        "memory": {arm: asdict(seen) for arm, seen in arms.items()},
        "iops": found,
        "verdicts": verdicts,
        "guest": guest,
    }
    finish("patched_pool", [*checks(arms[f"every {PERIOD_S} s"], found), *held], raw, where)


if __name__ == "__main__":
    main()
