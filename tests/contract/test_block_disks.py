"""The block benchmark by the project's guest, with real QEMUs."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.qemus.qemu import Build, builds, installed, old
from vmtune.bench.block.order import BlockOrder, BlockPhase
from vmtune.bench.block.reduce import reduce_block
from vmtune.bench.migration.order import DirectTestbed, RunProgress, RunResult
from vmtune.bench.model.metrics.block import LOAD_SHARE, METRICS
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.block import BlockRecord, BlockScenario, LoadPhase
from vmtune.bench.model.scenario.guest_driver import GuestDriver
from vmtune.bench.model.scenario.matrix_cells import BlockCell, IoPattern, NodeKind
from vmtune.bench.run import run_any
from vmtune.bench.run_folder import processes_of
from vmtune.documents import dataclass_json as documents
from vmtune.errors import SetupError
from vmtune.lab.domain_xml import kvm_usable

NO_QEMU = installed().why_not
pytestmark = pytest.mark.skipif(bool(NO_QEMU), reason=NO_QEMU or "never")
MIB = 1 << 20
QUICK = BlockScenario(
    BlockCell(NodeKind.NULL, IoPattern.RANDREAD, 4096, 4, 2),
    size_bytes=16 * MIB,
    runtime_s=1,
    ramp_s=0,
    driver=GuestDriver(),
)
LONG = replace(QUICK, runtime_s=600, name="")


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder with a path short enough for sockets; nothing is left in it, or runs for it."""
    with tempfile.TemporaryDirectory(prefix="vt-") as name:
        yield Path(name)
        assert list(Path(name).iterdir()) == []
        assert processes_of(Path(name)) == []


async def run(
    base: Path,
    scenario: BlockScenario,
    build: Build | None = None,
    on_progress: Callable[[RunProgress], None] = lambda _: None,
    kvm: bool | None = None,
) -> RunResult:
    testbed = DirectTestbed(Path((build or installed()).program), folder=base / "bench")
    by_kvm = kvm_usable() if kvm is None else kvm
    order = BlockOrder(scenario, testbed=testbed, scratch=base / "scratch", kvm=by_kvm)
    return await run_any(order, on_progress)


def record_of(result: RunResult) -> BlockRecord:
    assert (result.state, result.failure) == (RunState.COMPLETED, "")
    assert result.record.block is not None
    return result.record.block


@pytest.mark.parametrize("build", builds(), ids=lambda build: build.label)
async def test_a_measurement(base: Path, build: Build) -> None:
    if build.why_not:
        pytest.skip(build.why_not)
    told: list[RunProgress] = []
    result = await run(base, QUICK, build, told.append)
    record = record_of(result)
    assert result.kvm is kvm_usable()
    assert (record.qemu, record.qemu_ended, record.fio_status) == (build.label[5:], "", None)
    assert record.load_ms is not None
    assert record.load_ended_ms is not None
    assert record.measured_ms is not None
    begin, end = record.measured_ms
    assert 0 < record.load_ms <= begin < end <= record.load_ended_ms < record.ended_ms
    phases = [sample.phase for sample in record.processes]
    assert set(phases) == set(LoadPhase)
    assert phases == sorted(phases, key=list(LoadPhase).index)
    metrics = reduce_block(record)
    assert list(metrics) == [name for name in METRICS if name != LOAD_SHARE]
    assert all(value > 0 for value in metrics.values())
    assert metrics["bandwidth_bytes_per_s"] == pytest.approx(metrics["iops"] * 4096)
    assert metrics["latency_p50_us"] <= metrics["latency_p99_us"] <= metrics["latency_p999_us"]
    found = record.guest_io
    assert found is not None
    assert (found.disks, found.queues, found.depth, found.write.requests) == (1, 1, 8, 0)
    assert record.pool_forecast is not None
    assert record.pool_forecast.requests == 8
    assert documents.from_json(BlockRecord, documents.to_json(record)) == record
    shares = [progress.share for progress in told]
    assert shares == sorted(shares)
    assert [told[0].phase, told[-1].phase] == [BlockPhase.STARTING, BlockPhase.CLEANING_UP]


@pytest.mark.parametrize("node", [NodeKind.RAW, NodeKind.QCOW2])
async def test_disks_on_files_and_on_iothreads_of_their_own(base: Path, node: NodeKind) -> None:
    cell = BlockCell(node, IoPattern.RANDRW, 4096, 8, 4, disks=2, queues=2, iothreads=2)
    values = {"iothread_poll_max_ns": 0}
    named: set[str] = set()

    def look(progress: RunProgress) -> None:
        if progress.phase is BlockPhase.LOADING:
            named.update(path.name for path in base.glob("scratch/*/*"))

    scenario = replace(QUICK, cell=cell, values=values, driver=GuestDriver(vcpus=2), name="")
    record = record_of(await run(base, scenario, on_progress=look))
    found = record.guest_io
    assert found is not None
    assert (found.disks, found.queues, found.depth) == (2, 4, 32)
    assert found.read.requests > 0
    assert found.write.requests > 0
    # QEMU alone still has the images: they go with QEMU, however that ends.
    assert named == {"lock"}


async def test_the_queues_of_a_disk_on_several_iothreads(base: Path) -> None:
    cell = BlockCell(NodeKind.NULL, IoPattern.RANDREAD, 4096, 8, 4, queues=4, iothreads=2)
    scenario = replace(QUICK, cell=cell, name="")
    if installed().release >= (9,):
        found = record_of(await run(base, scenario)).guest_io
        assert found is not None
        assert (found.disks, found.queues) == (1, 4)
    if not old().why_not:
        with pytest.raises(SetupError, match="iothread-vq-mapping"):
            await run(base, scenario, old())


async def test_by_the_main_loop_with_interrupts_and_tcg(base: Path) -> None:
    scenario = replace(QUICK, iothread=False, driver=GuestDriver(interrupts=True), name="")
    result = await run(base, scenario, kvm=False)
    found = record_of(result).guest_io
    assert not result.kvm
    assert found is not None
    assert found.requests > 0


async def test_a_qemu_that_dies_is_a_failed_run(base: Path) -> None:
    def kill(progress: RunProgress) -> None:
        during = progress.process is not None and progress.process.phase is LoadPhase.DURING
        if progress.phase is BlockPhase.LOADING and during:
            for pid in processes_of(base):
                _kill(pid)

    result = await run(base, LONG, on_progress=kill)
    assert result.state is RunState.FAILED
    assert result.failure.startswith("QEMU died of SIGKILL")
    assert result.record.block is not None
    assert "iops" not in reduce_block(result.record.block)


def _kill(pid: int) -> None:
    if b"bench-block" in Path(f"/proc/{pid}/cmdline").read_bytes():
        os.kill(pid, signal.SIGKILL)


async def test_the_smallest_queues_and_the_largest_requests(base: Path) -> None:
    values = {"virtio_blk_queue_size": 16}
    cell = replace(QUICK.cell, iodepth=8)
    scenario = replace(QUICK, cell=cell, values=values, size_bytes=MIB, name="")
    large = replace(scenario, cell=replace(cell, block_size_bytes=2 * MIB, iodepth=1, numjobs=1),
                    size_bytes=2 * MIB, name="")  # fmt: skip
    assert record_of(await run(base, scenario)).guest_io is not None
    assert record_of(await run(base, large)).guest_io is not None


async def test_a_cancelled_run_leaves_nothing(base: Path) -> None:
    loading = asyncio.Event()

    def look(progress: RunProgress) -> None:
        if progress.phase is BlockPhase.LOADING:
            loading.set()

    task = asyncio.create_task(run(base, LONG, on_progress=look))
    await loading.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes_of(base) == []
