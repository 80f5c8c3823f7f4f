"""The block benchmark against a VM that runs, with QMP sockets and with libvirt."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.drivers import bench_libvirt, bench_qmp
from tests.support.drivers.benches import Bench, BenchKind
from vmtune.bench.block.live import run_live
from vmtune.bench.block.live_order import LiveOrder, check_guest, clear_live
from vmtune.bench.block.reduce import reduce_block
from vmtune.bench.migration.order import RunProgress
from vmtune.bench.model.metrics.block import LOAD_SHARE, METRICS
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.block import BlockScenario, LoadPhase
from vmtune.bench.model.scenario.block_target import LiveTarget
from vmtune.bench.model.scenario.matrix_cells import BlockCell, IoPattern, NodeKind
from vmtune.bench.run_folder import processes_of
from vmtune.errors import CommandRefused, Conflict, InvalidInput, NotFound, SetupError
from vmtune.hypervisor.protocol import Driver
from vmtune.hypervisor.qemu.block_export import Export
from vmtune.hypervisor.qmp.driver import QmpDriver

MIB = 1 << 20
READS = BlockScenario(
    BlockCell(NodeKind.NULL, IoPattern.RANDREAD, 4096, 4, 2),
    size_bytes=16 * MIB,
    runtime_s=1,
    ramp_s=0,
    iothread=False,
)
WRITES = replace(READS, cell=replace(READS.cell, rw=IoPattern.RANDWRITE), name="")
LONG = replace(READS, runtime_s=60, name="")


def order_for(
    scenario: BlockScenario, driver: Driver, vm: UUID, base: Path, node: str = ""
) -> LiveOrder:
    """*scenario* for a VM's node, or for a null node that is made for it."""
    cell = replace(scenario.cell, node=NodeKind.VM if node else NodeKind.NULL)
    scenario = replace(scenario, cell=cell, target=LiveTarget(vm, node), name="")
    return LiveOrder(scenario, driver, base)


@asynccontextmanager
async def qmp_driver(uri: str) -> AsyncIterator[Driver]:
    """As the service has one for an address."""
    driver = QmpDriver(uri)
    try:
        yield driver
    finally:
        await driver.close()


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder with a path short enough for sockets; nothing is left in it, or runs for it."""
    with tempfile.TemporaryDirectory(prefix="vt-") as name:
        yield Path(name) / "live"
        assert list(Path(name).glob("live/*")) == []
        assert processes_of(Path(name) / "live") == []


@pytest.fixture(
    params=[pytest.param(k, id=k.id) for k in (*bench_qmp.kinds(), *bench_libvirt.kinds())]
)
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    kind: BenchKind = request.param
    if kind.why_not:
        pytest.skip(kind.why_not)
    async with kind.open(tmp_path) as opened:
        yield opened


async def names(bench: Bench) -> set[str]:
    return {node.name for node in await bench.source.block_nodes(bench.vm)}


@contextmanager
def made(base: Path) -> Iterator[Path]:
    """The path of an export's socket, in a folder that nothing is left in."""
    base.mkdir()
    yield base / "vmtune-nbd.sock"
    base.rmdir()


async def check_clean(bench: Bench, base: Path) -> None:
    """No server, no node, no folder: an export can be made, and is removed."""
    found = await names(bench)
    assert "vmtune-node" not in found
    with made(base) as socket:
        await bench.source.export_node(bench.vm, Export(min(found), socket))
        await bench.source.remove_export(bench.vm)
        await bench.source.remove_export(bench.vm)


async def test_a_running_vm(bench: Bench, base: Path) -> None:
    """All of it on one VM: a null node made for it, a node of its own, and what is refused."""
    before = await bench.source.block_nodes(bench.vm)
    nothing: list[RunProgress] = []
    written = await run_live(order_for(WRITES, bench.source, bench.vm, base), nothing.append)
    assert (written.state, written.failure) == (RunState.COMPLETED, "")
    assert list(reduce_block(written.record)) == [name for name in METRICS if name != LOAD_SHARE]
    assert written.record.qemu == str(bench.qemu)
    await check_clean(bench, base)

    own = next(node.name for node in before if node.on_main_loop)
    for node in before:
        if node.on_main_loop:
            continue
        with pytest.raises(SetupError, match="may handle") as refused:
            await run_live(
                order_for(READS, bench.source, bench.vm, base, node.name), nothing.append
            )
        (problem,) = refused.value.problems
        assert (problem.field, problem.code) == ("target.node", "qemu_would_die")
        assert own in problem.remedy
        await check_clean(bench, base)
    with pytest.raises(SetupError) as silent:
        await check_guest(await bench.source.guest_agent(bench.vm))
    assert [problem.code for problem in silent.value.problems] == ["no_guest_agent"]
    order = order_for(READS, bench.source, bench.vm, base, own)
    read = await run_live(order, lambda _: None)
    assert (read.state, read.failure) == (RunState.COMPLETED, "")
    assert list(await bench.source.block_nodes(bench.vm)) == list(before)

    with pytest.raises(InvalidInput) as caught:
        await run_live(order_for(READS, bench.source, bench.vm, base, "none"), lambda _: None)
    (problem,) = caught.value.problems
    assert (problem.field, problem.code) == ("target.node", "unknown_node")
    assert own in problem.remedy
    await check_clean(bench, base)

    with made(base) as socket:
        mine = Export(own, socket)
        with pytest.raises(CommandRefused, match="read-only"):
            await bench.source.export_node(bench.vm, replace(mine, writable=True))
        await bench.source.export_node(bench.vm, mine)
        other = replace(order, folder=base.with_name("other"))
        with pytest.raises(Conflict, match="NBD server already"):
            await run_live(other, lambda _: None)
        assert socket.is_socket()  # it was not the run's to stop
        await bench.source.remove_export(bench.vm)


async def test_cancelled_it_leaves_the_vm_as_it_was(bench: Bench, base: Path) -> None:
    loading = asyncio.Event()

    def told(progress: RunProgress) -> None:
        if progress.process is not None and progress.process.phase is LoadPhase.DURING:
            loading.set()

    order = order_for(LONG, bench.source, bench.vm, base)
    task = asyncio.create_task(run_live(order, told))
    await loading.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await check_clean(bench, base)


KILLED = """
import asyncio, sys
from pathlib import Path
from uuid import UUID
from tests.contract.test_block_live import LONG, order_for
from vmtune.bench.block.live import run_live
from vmtune.hypervisor.qmp.driver import QmpDriver
order = order_for(LONG, QmpDriver(sys.argv[1]), UUID(sys.argv[2]), Path(sys.argv[3]))
asyncio.run(run_live(order, lambda p: print(p.process, flush=True)))
"""


def kill_in_the_middle(bench: Bench, base: Path) -> None:
    """Of a run by a process of its own."""
    program = [sys.executable, "-c", KILLED, bench.source.uri, str(bench.vm), str(base)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while "DURING" not in process.stdout.readline():
            assert process.poll() is None
        process.kill()
    while processes_of(base):
        pass  # fio goes by the kernel's hand


def leave_behind(base: Path, uri: str, vm: UUID) -> Path:
    """As a killed run does."""
    left = base / "run-00000000"
    left.mkdir(parents=True, exist_ok=True)
    (left / "live.json").write_text(json.dumps({"uri": uri, "vm": str(vm)}))
    return left


async def test_killed_its_export_is_removed_by_the_next(tmp_path: Path, base: Path) -> None:
    kind = bench_qmp.kinds()[0]
    if kind.why_not:
        pytest.skip(kind.why_not)
    async with kind.open(tmp_path) as bench:
        kill_in_the_middle(bench, base)
        assert "vmtune-node" in await names(bench)
        await bench.source.close()
        assert await clear_live(base, qmp_driver) == [bench.vm]
        await check_clean(bench, base)
        # What cannot be reached is kept for the next time; what has gone is done with.
        for uri, kept in (("qmp+unix:///nonexistent", True), (bench.source.uri, False)):
            left = leave_behind(base, uri, UUID(int=1))
            assert await clear_live(base, qmp_driver) == []
            assert left.exists() == kept
        with pytest.raises(NotFound):
            await bench.source.remove_export(UUID(int=1))
