"""QEMU 7.2 against QEMU 10: IOPS of a null node by depth, as the second source's table has them.

Each measurement is a fresh QEMU without a guest, whose null-co node fio reads by NBD: randread of
4 KiB, one job. Every block measures each QEMU at each depth once, in an order of its own; what the
change is and how sure that is, the comparison engine says.

Both use their main loop: on an iothread, QEMU 7.2 dies of the first client that hangs up
(``nbd_blockdev_client_closed: Assertion``). And QEMU's NBD server has 16 requests of a connection
at most in flight, so that what is beyond a depth of 16 waits before QEMU, not in it. The source
loads a virtio-blk disk from inside a guest, on another machine: its changes stand beside, no more.

    python -m tests.perf.pools.block_matrix [BLOCKS [SECONDS]]
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.perf.report import Check, environment, finish
from tests.perf.support import folder
from tests.support.qemus.qemu import Build, installed, old
from vmtune.bench.block.order import BlockOrder
from vmtune.bench.block.reduce import reduce_block
from vmtune.bench.block.run import run_block
from vmtune.bench.migration.order import DirectTestbed
from vmtune.bench.model.metrics.block import METRICS
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.block import BlockScenario
from vmtune.bench.model.scenario.matrix_cells import BlockCell, IoPattern, NodeKind
from vmtune.bench.run_folder import processes_of
from vmtune.lab.programs import require_programs
from vmtune.reference.changes import row_of
from vmtune.reference.loading import reference
from vmtune.stats.compare import Contrast, compare_many
from vmtune.stats.model import Comparison, Criterion, Effect, Figure, Observation, Sample
from vmtune.stats.schedule import schedule

BLOCKS = 10
SECONDS = 4
RAMP_S = 1
DEPTHS = (1, 8, 16, 32, 64)
OLD, NEW = "old", "new"
SEED = "block_matrix"
MARGIN = 0.02  # as the shipped matrix
PRIMARY = "iops"
BESIDE = ("qemu_cpu_us_per_io", "latency_p99_us", "maps_during")
LEAST_FOR_VERDICT = 6


@dataclass(frozen=True)
class Measured:
    """One measurement."""

    block: int | None
    arm: str
    iodepth: int
    state: RunState
    failure: str
    metrics: Mapping[str, float]

    def observation(self, metric: str) -> Observation:
        """For the comparison."""
        return Observation(self.metrics.get(metric), block=self.block, failure=self.failure)


def scenario(iodepth: int, seconds: int) -> BlockScenario:
    """What is measured at one depth."""
    cell = BlockCell(NodeKind.NULL, IoPattern.RANDREAD, 4096, iodepth, 1)
    return BlockScenario(cell, runtime_s=seconds, ramp_s=RAMP_S, iothread=False)


def measure(builds: Mapping[str, Build], blocks: int, seconds: int, at: Path) -> Iterator[Measured]:
    """All measurements, in randomised blocks; the first, a warm-up, does not count."""
    things = {f"{arm} {depth}": (arm, depth) for arm in builds for depth in DEPTHS}
    for slot in schedule(list(things), blocks, SEED):
        arm, depth = things[slot.arm]
        testbed = DirectTestbed(Path(builds[arm].program), folder=at / "bench")
        order = BlockOrder(scenario(depth, seconds), testbed=testbed, scratch=at / "scratch")
        result = asyncio.run(run_block(order, lambda _: None))
        found = reduce_block(result.record)
        when = "warm-up" if slot.warm_up else f"block {slot.block}"
        iops = f"{found.get(PRIMARY, 0):,.0f} IOPS {result.failure}".rstrip()
        print(f"{when}: {builds[arm].label}, depth {depth}: {iops}", flush=True)
        if not slot.warm_up:
            yield Measured(slot.block, arm, depth, result.state, result.failure, found)


def compared(runs: Sequence[Measured], metric: str) -> dict[int, Comparison]:
    """New against old, by depth."""
    criterion = Criterion(
        metric, METRICS[metric].direction, METRICS[metric].unit.value, MARGIN,
        primary=metric == PRIMARY,
    )  # fmt: skip

    def sample(arm: str, depth: int) -> Sample:
        mine = (run for run in runs if (run.arm, run.iodepth) == (arm, depth))
        return Sample(arm, tuple(run.observation(metric) for run in mine))

    pairs = [Contrast(sample(OLD, depth), sample(NEW, depth), criterion) for depth in DEPTHS]
    return dict(zip(DEPTHS, compare_many(pairs), strict=True))


def table(found: Mapping[int, Comparison], title: str, published: Mapping[int, str]) -> None:
    """Rows as the source has them, and what it lacks: how sure a change is."""
    print(f"\n{title}")
    print(f"{'rw':10}{'bs':>4}{'iodepth':>9}{'old':>12}{'new':>12}{'change':>9}"
          f"{'95 % interval':>20}  {'verdict':18}{'source' if published else ''}")  # fmt: skip
    for depth, comparison in found.items():
        change, interval = _words(comparison.effect)
        verdict = comparison.verdict.value if comparison.verdict else "-"
        print(f"{'randread':10}{'4k':>4}{depth:>9}{_figure(comparison.a.median):>12}"
              f"{_figure(comparison.b.median):>12}{change:>9}{interval:>20}  {verdict:18}"
              f"{published.get(depth, '')}".rstrip())  # fmt: skip


def _figure(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    return f"{figure.value:,.0f}" if figure.value >= 1000 else f"{figure.value:.3g}"


def _words(effect: Effect | None) -> tuple[str, str]:
    if effect is None:
        return "-", "-"
    ends = [f"{end - 1:+.1%}" if end is not None else "?" for end in (effect.low, effect.high)]
    known = effect.low is not None or effect.high is not None
    return f"{effect.estimate - 1:+.1%}", " to ".join(ends) if known else "-"


def of_the_source() -> dict[int, str]:
    """The changes that the second source printed, by depth."""
    rows = reference("coroutine-pool-global").tables["iops"]
    found = {}
    for depth in DEPTHS:
        at = {"rw": "randread", "block_size_bytes": 4096, "iodepth": depth}
        row = row_of(rows, NEW, at)
        if row is not None and row.change is not None:
            found[depth] = row.change.printed
    return found


def checks(runs: Sequence[Measured], found: Mapping[int, Comparison], blocks: int) -> list[Check]:
    """Every measurement has to be one, and with enough blocks every row has to have a verdict."""
    ended = sum(run.state is RunState.COMPLETED and PRIMARY in run.metrics for run in runs)
    out = [Check("measurements with a figure", ended, "", 2 * len(DEPTHS) * blocks, "min")]
    if blocks >= LEAST_FOR_VERDICT:
        judged = sum(c.effect is not None and c.effect.low is not None for c in found.values())
        out.append(Check("depths with an interval", judged, "", len(DEPTHS), "min"))
    return out


def main() -> None:
    """Measure and report."""
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else SECONDS
    builds = {OLD: old(), NEW: installed()}
    where = environment()
    for build in builds.values():
        if build.why_not:
            print(build.why_not)
            finish("block_matrix", [], {"skipped": build.why_not}, where)
    require_programs("fio")
    print(f"old: {builds[OLD].label}, new: {builds[NEW].label}; {blocks} blocks of "
          f"{2 * len(DEPTHS)} measurements of {seconds} s; main loop, one connection")  # fmt: skip
    with folder() as at:
        runs = list(measure(builds, blocks, seconds, at))
        left = len(processes_of(at)) + len(list(at.iterdir()))
    by_metric = {metric: compared(runs, metric) for metric in (PRIMARY, *BESIDE)}
    for metric, found in by_metric.items():
        unit = METRICS[metric].unit.value.replace("_per_", "/")
        title = METRICS[metric].title + (f", {unit}" if unit not in ("", "count") else "")
        table(found, title, of_the_source() if metric == PRIMARY else {})
    print(
        "\nMedians; the change is the estimate over blocks (Hodges-Lehmann), the verdict is about"
    )
    print(
        f"the new QEMU, with a margin of {MARGIN:.0%}. Up to 16 requests are in QEMU at once. Both"
    )
    print("are on their main loop: on an iothread QEMU 7.2 dies of an NBD client that hangs up.")
    held = [*checks(runs, by_metric[PRIMARY], blocks), Check("left behind", left, "", 0, "max")]
    raw = {
        "blocks": blocks,
        "seconds": seconds,
        "qemus": {arm: build.label for arm, build in builds.items()},
        "runs": [asdict(run) for run in runs],
        "comparisons": {
            metric: {depth: asdict(comparison) for depth, comparison in found.items()}
            for metric, found in by_metric.items()
        },
    }
    finish("block_matrix", held, raw, where)


if __name__ == "__main__":
    main()
