"""One measurement in which the project's guest loads its disks, from a fresh QEMU to a record."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from vmtune.bench.block.disks_line import DiskFiles, disks_line, file_node, format_line
from vmtune.bench.block.guest_console import GuestConsole, guest_console
from vmtune.bench.block.load import LOOK_EVERY_S, MAPS_EVERY_S, Watch
from vmtune.bench.block.order import BlockOrder, BlockPhase, BlockResult
from vmtune.bench.block.run import Reporter, around
from vmtune.bench.block.stage import clear_block_runs, make_file, node_file, tune
from vmtune.bench.migration.direct_stage import BenchQemu, guest_program
from vmtune.bench.migration.order import RunProgress
from vmtune.bench.migration.stage import finish
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.block import (
    BlockRecord,
    BlockScenario,
    LoadPhase,
    PoolForecast,
)
from vmtune.bench.model.scenario.guest_driver import GuestDriver
from vmtune.bench.model.scenario.matrix_cells import NodeKind
from vmtune.bench.model.settable import settable
from vmtune.bench.qemu_process import find_qemu
from vmtune.bench.run_folder import run_folder
from vmtune.errors import CommandRefused, SetupError, VmtuneError
from vmtune.hypervisor.qemu.block_export import make_qcow2
from vmtune.hypervisor.qmp.driver import QmpDriver
from vmtune.lab.programs import require_programs
from vmtune.model.guest_io import GuestIo, failure_of

_SOCKET = "qemu.sock"
_STARTS_WITHIN_S = 120.0
"""What the guest may take in addition to its ramp and its runtime: firmware by TCG, and answers
that come late."""


@dataclass(frozen=True, slots=True)
class DisksStage:
    """A QEMU whose vCPUs wait to be started."""

    qemu: BenchQemu
    watch: Watch
    console: GuestConsole
    version: str
    pool_forecast: PoolForecast

    def alive(self) -> bool:
        """Whether QEMU has not ended."""
        return self.qemu.process.poll() is None


@dataclass(frozen=True, slots=True)
class _Done:
    begun_ms: float
    ended_ms: float
    overdue: bool


async def run_disks(
    order: BlockOrder, driver: GuestDriver, on_progress: Callable[[RunProgress], None]
) -> BlockResult:
    """Start QEMU, let its guest load its disks, and take all down.

    A QEMU that dies, and a guest that stops, are results. Cancelling the task ends the run:
    everything is taken down, and the cancellation is re-raised.

    :param on_progress: called several times a second, from the event loop.
    :raise VmtuneError: the run cannot be done here; nothing was left behind.
    """
    scenario = order.effective
    reporter = Reporter(scenario.longest_s, on_progress)
    reporter.report(BlockPhase.STARTING)
    async with _stage(order, scenario, driver) as stage:
        reporter.start(stage.watch)
        await around(stage.watch, LoadPhase.BEFORE, reporter)
        done = await _load(stage, scenario.ramp_s + scenario.runtime_s, reporter)
        if stage.alive():
            with contextlib.suppress(VmtuneError):  # it may be about to die
                # A guest that looked for answers goes on to use up its CPU.
                await stage.qemu.monitor.execute("stop")
            await around(stage.watch, LoadPhase.AFTER, reporter)
        reporter.report(BlockPhase.CLEANING_UP)
        return _result(stage, done)


async def _load(stage: DisksStage, lasts_s: float, reporter: Reporter) -> _Done:
    watch, console = stage.watch, stage.console
    begun_ms = watch.mark()
    await stage.qemu.monitor.execute("cont")
    deadline = time.monotonic() + lasts_s + _STARTS_WITHIN_S
    looked = 0.0
    overdue = False
    while not console.ended and stage.alive():
        watch.mark()
        now = time.monotonic()
        if now > deadline:
            overdue = True
            break
        if now - looked >= MAPS_EVERY_S:
            looked = now
            await watch.look(LoadPhase.DURING)
            reporter.report(BlockPhase.LOADING)
        await console.wait(LOOK_EVERY_S)
    return _Done(begun_ms, watch.mark(), overdue)


def _result(stage: DisksStage, done: _Done) -> BlockResult:
    console, watch = stage.console, stage.watch
    words = stage.qemu.last_words() if not stage.alive() else ""
    found = console.report.result()
    record = BlockRecord(
        qemu=stage.version,
        load_ms=done.begun_ms,
        load_ended_ms=done.ended_ms,
        measured_ms=tuple(console.counted) if len(console.counted) == 2 else None,
        ended_ms=watch.at_ms(),
        processes=tuple(watch.processes),
        cpu=tuple(watch.cpu),
        pool_forecast=stage.pool_forecast,
        qemu_output=stage.qemu.errors.said(),
        qemu_ended=words.removeprefix("QEMU ").partition(":")[0],
        guest_io=found,
    )
    failure = words or _failure(console, found, done.overdue)
    return BlockResult(RunState.FAILED if failure else RunState.COMPLETED, record, failure)


def _failure(console: GuestConsole, found: GuestIo | None, overdue: bool) -> str:
    if console.fault is not None:
        return f"the guest stopped: {console.fault.parameter} {console.fault.reason}"
    if overdue:
        return "the guest did not end in time"
    return "the guest told no result" if found is None else failure_of(found)


@asynccontextmanager
async def _stage(
    order: BlockOrder, scenario: BlockScenario, driver: GuestDriver
) -> AsyncIterator[DisksStage]:
    """A fresh QEMU, tuned; nothing is left of it afterwards.

    :raise SetupError: there is no such QEMU, it does not start, or a node cannot be made.
    :raise VmtuneError: QEMU refuses a value.
    """
    testbed = order.testbed
    program = find_qemu(testbed.qemu)
    require_programs("setpriv")
    await asyncio.to_thread(clear_block_runs, testbed.folder, order.scratch)
    with run_folder(testbed.folder) as folder, _node_files(order, scenario) as nodes:
        kernel = folder / "guest.elf"
        await asyncio.to_thread(lambda: kernel.write_bytes(guest_program()))
        vm = uuid4()
        at = folder / "qemu"
        at.mkdir()
        own = folder / "qemu.own"
        if scenario.cell.node is NodeKind.QCOW2:
            await _format(
                program, testbed.data_folder, nodes, folder / "format.own", scenario.size_bytes
            )
        files = DiskFiles(program, testbed.data_folder, kernel, folder, at / _SOCKET, own, nodes)
        watch: Watch | None = None
        async with guest_console(folder, lambda: watch.at_ms() if watch else 0.0) as console:
            qemu = BenchQemu(disks_line(files, scenario, driver, vm, kvm=order.kvm), own)
            qmp = QmpDriver(f"qmp+unix://{at}", more_commands=testbed.consents, tunables=settable())
            try:
                await qemu.listens()
                for file in nodes:
                    # Its name is not needed any more: it goes with QEMU.
                    await asyncio.to_thread(file.unlink)
                version, pool_forecast = await tune(qmp, vm, scenario)
                watch = Watch(qemu.process.pid, without_vcpus=True)
                yield DisksStage(qemu, watch, console, version, pool_forecast)
            finally:
                await finish(_take_down(qmp, qemu, watch))


async def _take_down(driver: QmpDriver, qemu: BenchQemu, watch: Watch | None) -> None:
    if watch is not None:
        watch.close()
    await asyncio.gather(driver.close(), qemu.end(), return_exceptions=True)


@contextmanager
def _node_files(order: BlockOrder, scenario: BlockScenario) -> Iterator[Sequence[Path]]:
    """The files behind the disks; none where they need none.

    :raise SetupError: they cannot be made there.
    """
    disks = scenario.cell.disks
    with node_file(order.scratch, scenario, disks) as first:
        if first is None:
            yield ()
            return
        files = [first.with_name(f"{first.name}{number}") for number in range(disks)]
        for file in files:
            make_file(file, scenario)
        yield files


async def _format(
    program: Path, data_folder: Path | None, files: Sequence[Path], own: Path, size_bytes: int
) -> None:
    """Make the files images, by a QEMU of their own: a disk has to be there when QEMU starts.

    :raise SetupError: it cannot be done.
    """
    qemu = BenchQemu(format_line(program, data_folder, files, own), own)
    try:
        await qemu.listens()
        for number in range(len(files)):
            await make_qcow2(qemu.monitor, file_node(number), size_bytes)
    except CommandRefused as refusal:
        raise SetupError(f"the node cannot be made: {refusal.message}") from refusal
    finally:
        await finish(qemu.end())
