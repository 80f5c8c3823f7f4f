"""The block benchmark, with real QEMUs and fio."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.qemus.qemu import Build, builds, installed, old
from vmtune.bench.block.order import BlockOrder, BlockPhase, BlockResult
from vmtune.bench.block.reduce import reduce_block
from vmtune.bench.block.run import run_block
from vmtune.bench.block.stage import clear_block_runs
from vmtune.bench.migration.order import DirectTestbed, RunProgress
from vmtune.bench.model.metrics.block import LOAD_SHARE, METRICS
from vmtune.bench.model.metrics.metric import Group
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.block import BlockRecord, BlockScenario, LoadPhase, ProcessSample
from vmtune.bench.model.scenario.matrix_cells import BlockCell, IoPattern, NodeKind
from vmtune.bench.run_folder import processes_of
from vmtune.documents import dataclass_json as documents
from vmtune.errors import LabError, SetupError
from vmtune.lab import programs

NO_QEMU = installed().why_not
pytestmark = pytest.mark.skipif(bool(NO_QEMU), reason=NO_QEMU or "never")
MIB = 1 << 20

QUICK = BlockScenario(
    BlockCell(NodeKind.NULL, IoPattern.RANDREAD, 4096, 4, 2),
    size_bytes=16 * MIB,
    runtime_s=1,
    ramp_s=0,
    iothread=False,
)
LONG = replace(QUICK, runtime_s=60, name="")


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder with a path short enough for sockets; nothing is left in it, or runs for it."""
    with tempfile.TemporaryDirectory(prefix="vt-") as name:
        yield Path(name)
        assert list(Path(name).iterdir()) == []
        assert processes_of(Path(name)) == []


def order(base: Path, scenario: BlockScenario, build: Build | None = None) -> BlockOrder:
    testbed = DirectTestbed(Path((build or installed()).program), folder=base / "bench")
    return BlockOrder(scenario, testbed=testbed, scratch=base / "scratch")


async def run(
    base: Path,
    scenario: BlockScenario,
    build: Build | None = None,
    on_progress: Callable[[RunProgress], None] = lambda _: None,
) -> BlockResult:
    return await run_block(order(base, scenario, build), on_progress)


def qemu_of(base: Path) -> int:
    """The run's QEMU."""
    pids = processes_of(base)
    return next(pid for pid in pids if b"bench-block" in Path(f"/proc/{pid}/cmdline").read_bytes())


def check_timeline(record: BlockRecord) -> None:
    assert record.load_ms is not None
    assert record.load_ended_ms is not None
    assert record.measured_ms is not None
    begin, end = record.measured_ms
    assert 0 < record.load_ms <= begin < end <= record.load_ended_ms < record.ended_ms
    used = [mark.cpu_ms for mark in record.cpu]
    assert used == sorted(used)
    phases = [sample.phase for sample in record.processes]
    assert phases == sorted(phases, key=list(LoadPhase).index)
    for sample in record.processes:
        before, after = sample.at_ms < record.load_ms, sample.at_ms > record.load_ended_ms
        expected = {(True, False): LoadPhase.BEFORE, (False, True): LoadPhase.AFTER}
        assert sample.phase is expected.get((before, after), LoadPhase.DURING)


@pytest.mark.parametrize("build", builds(), ids=lambda build: build.label)
async def test_a_measurement(base: Path, build: Build) -> None:
    if build.why_not:
        pytest.skip(build.why_not)
    told: list[RunProgress] = []
    result = await run(base, QUICK, build, told.append)
    record = result.record
    assert (result.state, result.failure) == (RunState.COMPLETED, "")
    assert (record.qemu, record.qemu_ended, record.fio_status) == (build.label[5:], "", 0)
    check_timeline(record)
    metrics = reduce_block(record)
    assert list(metrics) == [name for name in METRICS if name != LOAD_SHARE]
    assert all(value > 0 for value in metrics.values())
    assert metrics["bandwidth_bytes_per_s"] == pytest.approx(metrics["iops"] * 4096, rel=1e-3)
    assert metrics["latency_p50_us"] <= metrics["latency_p99_us"] <= metrics["latency_p999_us"]
    assert metrics["maps_before"] < metrics["maps_during"]
    assert record.pool_forecast is not None
    assert record.pool_forecast.requests == 8
    assert record.fio is not None
    assert record.fio["jobs"][0]["job options"]["iodepth"] == "4"
    kept = documents.from_json(BlockRecord, documents.to_json(record))
    assert kept == record
    shares = [progress.share for progress in told]
    assert shares == sorted(shares)
    assert [told[0].phase, told[-1].phase] == [BlockPhase.STARTING, BlockPhase.CLEANING_UP]
    assert told[-1].process == record.processes[-1]


async def test_an_image_written_on_a_tuned_iothread(base: Path) -> None:
    values = {"iothread_poll_max_ns": 0, "iothread_thread_pool_max": 8, "virtio_blk_queues": 4}
    cell = BlockCell(NodeKind.QCOW2, IoPattern.RANDRW, 4096, 8, 1)
    scenario = replace(QUICK, cell=cell, iothread=True, values=values, name="")
    named: set[str] = set()

    def look(progress: RunProgress) -> None:
        if progress.phase is BlockPhase.LOADING:
            named.update(path.name for path in base.glob("scratch/*/*"))

    result = await run(base, scenario, on_progress=look)
    assert (result.state, result.failure) == (RunState.COMPLETED, "")
    metrics = reduce_block(result.record)
    assert list(metrics) == [name for name in METRICS if name != LOAD_SHARE]
    assert result.record.fio is not None
    (job,) = result.record.fio["jobs"]
    assert job["read"]["total_ios"] > 0
    assert job["write"]["total_ios"] > 0
    # QEMU alone still has the image: it goes with QEMU, however that ends.
    assert named == {"lock"}
    assert result.record.pool_forecast is not None
    # 128 and half of 4 queues of 256 (hw/block/virtio-blk.c of 10.0)
    assert result.record.pool_forecast.soft_limit == 128 + 4 * 256 // 2


async def test_a_raw_file_is_read(base: Path) -> None:
    cell = BlockCell(NodeKind.RAW, IoPattern.READ, 65536, 2, 1)
    result = await run(base, replace(QUICK, cell=cell, name=""))
    assert (result.state, result.failure) == (RunState.COMPLETED, "")
    assert result.record.fio is not None
    assert result.record.fio["jobs"][0]["write"]["total_ios"] == 0


async def test_a_qemu_that_has_no_memory_for_a_stack_is_a_result(base: Path) -> None:
    """As at vm.max_map_count, which is the whole machine's: here by a limit of its own."""
    cell = replace(QUICK.cell, iodepth=16, numjobs=16)

    def limit(progress: RunProgress) -> None:
        if progress.process is not None and progress.process.phase is LoadPhase.BEFORE:
            most = progress.process.vsz_bytes + 8 * MIB
            resource.prlimit(qemu_of(base), resource.RLIMIT_AS, (most, most))

    result = await run(base, replace(LONG, cell=cell, name=""), on_progress=limit)
    assert result.state is RunState.FAILED
    assert result.failure.startswith("QEMU died of SIGABRT: ")
    assert "failed to allocate memory for stack" in result.failure
    record = result.record
    assert record.qemu_ended == "died of SIGABRT"
    assert "failed to allocate memory for stack" in record.qemu_output
    assert record.fio_status not in (None, 0)
    metrics = reduce_block(record)
    assert {METRICS[name].group for name in metrics} == {Group.MEMORY}
    assert "maps_before" in metrics
    assert "maps_after" not in metrics


@pytest.mark.skipif(bool(old().why_not), reason=old().why_not or "-")
async def test_the_old_qemu_dies_of_a_client_of_its_iothread(base: Path) -> None:
    """QEMU 7.2's own fault (blockdev-nbd.c), and so what is compared with it uses the main
    loop."""
    result = await run(base, replace(QUICK, iothread=True, name=""), old())
    assert result.state is RunState.FAILED
    assert "nbd_blockdev_client_closed" in result.failure


async def test_a_qemu_that_dies_under_load_is_a_result(base: Path) -> None:
    """What fio had done by then is kept."""

    seen: list[ProcessSample] = []

    def kill(progress: RunProgress) -> None:
        if progress.process is None or progress.process in seen:
            return
        seen.append(progress.process)
        loaded = [sample for sample in seen if sample.stacks > seen[0].stacks]
        if len(loaded) == 2:  # its connections have taken coroutines for a while
            os.kill(qemu_of(base), signal.SIGKILL)

    result = await run(base, LONG, on_progress=kill)
    assert (result.state, result.failure) == (RunState.FAILED, "QEMU died of SIGKILL")
    record = result.record
    assert record.load_ended_ms is not None
    assert record.load_ended_ms < 60_000
    assert record.fio is not None
    assert record.fio["jobs"][0]["read"]["total_ios"] > 0
    assert "iops" not in reduce_block(record)


async def test_cancelled_it_leaves_nothing(base: Path) -> None:
    loading = asyncio.Event()

    def told(progress: RunProgress) -> None:
        if progress.process is not None and progress.process.phase is LoadPhase.DURING:
            loading.set()

    cell = replace(LONG.cell, node=NodeKind.RAW)
    task = asyncio.create_task(run(base, replace(LONG, cell=cell, name=""), on_progress=told))
    await loading.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


KILLED = """
import asyncio, sys
from pathlib import Path
from tests.contract.test_block_run import LONG, run
print("starting", flush=True)
asyncio.run(run(Path(sys.argv[1]), LONG, on_progress=lambda p: print(p.process, flush=True)))
"""


def test_killed_it_leaves_no_process_and_the_next_clears_its_folders(base: Path) -> None:
    program = [sys.executable, "-c", KILLED, str(base)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while "DURING" not in process.stdout.readline():
            assert process.poll() is None
        # Its QEMU and its fio, which has no command line at the moment that it takes sh's place.
        while len(processes_of(base)) != 2:
            assert process.poll() is None
        process.kill()
    while processes_of(base):
        pass  # the kernel kills them; this ends only when it has
    assert list(base.glob("bench/run-*"))
    clear_block_runs(base / "bench", base / "scratch")
    assert list(base.glob("*/*")) == []
    (base / "bench").rmdir()


async def test_without_fio_it_names_the_package(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_PATH", str(base))
    with pytest.raises(LabError, match=r"fio is not installed \(install the package fio"):
        await run(base, QUICK)


async def test_a_node_that_does_not_fit_is_refused(base: Path) -> None:
    cell = replace(QUICK.cell, node=NodeKind.RAW)
    with pytest.raises(SetupError, match="the node takes 16 TiB") as caught:
        await run(base, replace(QUICK, cell=cell, size_bytes=1 << 44, name=""))
    assert [p.field for p in caught.value.problems] == ["size_bytes"]


async def test_a_program_that_is_none(base: Path) -> None:
    with pytest.raises(SetupError, match="no program /nonexistent"):
        await run(base, QUICK, Build("none", "/nonexistent"))
