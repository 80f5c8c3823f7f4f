"""A QEMU that exports a scratch node, and nothing left of it afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from uuid import UUID, uuid4

from vmtune import units
from vmtune.bench.block.command_lines import IOTHREAD, BlockFiles, qemu_line, writes
from vmtune.bench.block.order import BlockOrder
from vmtune.bench.migration.direct_stage import BenchQemu
from vmtune.bench.migration.stage import finish
from vmtune.bench.model.scenario.block import BlockScenario, PoolForecast
from vmtune.bench.model.scenario.matrix_cells import NodeKind
from vmtune.bench.model.settable import settable
from vmtune.bench.qemu_process import find_qemu
from vmtune.bench.run_folder import clear_left_behind, run_folder
from vmtune.errors import CommandRefused, SetupError, VmtuneError
from vmtune.hypervisor.linux.local_host import read_local_host
from vmtune.hypervisor.qemu.block_allowlist import FILE, NODE, SOCKET
from vmtune.hypervisor.qemu.block_export import (
    REQUESTS_PER_CONNECTION,
    Export,
    add_export,
    make_qcow2,
    remove_export,
)
from vmtune.hypervisor.qmp.driver import QmpDriver
from vmtune.lab.programs import require_programs
from vmtune.model.host.facts import Reading, VmFacts
from vmtune.model.host.pools import geometry_of, headroom, pool_model
from vmtune.model.plan.changes import Change, in_order
from vmtune.model.tunables.tunable import Route
from vmtune.units import Unit

_SOCKET = "qemu.sock"
_LEFT_FREE_BYTES, _LEFT_FREE_SHARE = 64 << 20, 10
"""Of the disk with the node's file: an image has tables besides its data, and a tenth is for all
else that writes there: who may run benchmarks must not be able to fill the disk."""


@dataclass(frozen=True, slots=True)
class BlockStage:
    """A QEMU whose node is exported.

    :param folder: of the run.
    """

    qemu: BenchQemu
    export: Export
    folder: Path
    version: str
    pool_forecast: PoolForecast

    @property
    def pid(self) -> int:
        """Its process."""
        return self.qemu.process.pid

    def alive(self) -> bool:
        """Whether it has not ended."""
        return self.qemu.process.poll() is None


def clear_block_runs(folder: Path, scratch: Path) -> None:
    """Remove what runs left that were killed: their folders, node files and processes."""
    clear_left_behind(folder)
    clear_left_behind(scratch)


@asynccontextmanager
async def block_stage(order: BlockOrder, scenario: BlockScenario) -> AsyncIterator[BlockStage]:
    """A fresh QEMU, tuned, with its node exported; nothing is left of it afterwards.

    :raise SetupError: there is no such QEMU or no fio, QEMU does not start, or the node cannot
        be made.
    :raise VmtuneError: QEMU refuses a value, or the export.
    """
    testbed = order.testbed
    program = find_qemu(testbed.qemu)
    require_programs("fio", "setpriv")
    await asyncio.to_thread(clear_block_runs, testbed.folder, order.scratch)
    with run_folder(testbed.folder) as folder, node_file(order.scratch, scenario) as file:
        if file is not None:
            await asyncio.to_thread(make_file, file, scenario)
        vm = uuid4()
        at = folder / "qemu"
        at.mkdir()
        files = BlockFiles(program, testbed.data_folder, at / _SOCKET, folder / "qemu.own", file)
        qemu = BenchQemu(qemu_line(files, scenario, vm), files.own)
        driver = QmpDriver(f"qmp+unix://{at}", more_commands=testbed.consents, tunables=settable())
        try:
            await qemu.listens()
            await _finish_node(qemu, file, scenario)
            version, pool_forecast = await tune(driver, vm, scenario)
            iothread = IOTHREAD if scenario.iothread else ""
            export = Export(NODE, folder / SOCKET, writes(scenario), iothread)
            await add_export(qemu.monitor, export)
            yield BlockStage(qemu, export, folder, version, pool_forecast)
        finally:
            await finish(_take_down(driver, qemu))


async def _take_down(driver: QmpDriver, qemu: BenchQemu) -> None:
    with contextlib.suppress(VmtuneError):  # it may be dead
        await remove_export(qemu.monitor, scratch=False)
    await asyncio.gather(driver.close(), qemu.end(), return_exceptions=True)


@contextmanager
def node_file(scratch: Path, scenario: BlockScenario, nodes: int = 1) -> Iterator[Path | None]:
    """The path of the file that the node needs; None where it needs none.

    :param nodes: how many of that size there is to be room for.
    :raise SetupError: it cannot be made there.
    """
    if scenario.cell.node is NodeKind.NULL:
        yield None
        return
    with run_folder(scratch) as folder:
        disk = shutil.disk_usage(folder)
        kept = max(_LEFT_FREE_BYTES, disk.total // _LEFT_FREE_SHARE)
        needed = scenario.size_bytes * nodes
        if disk.free < needed + kept:
            raise SetupError(
                f"{scratch} has {units.approximate(disk.free, Unit.BYTES)} left, the node takes "
                f"{units.render(needed, Unit.BYTES)}, and "
                f"{units.approximate(kept, Unit.BYTES)} stay free",
                field="size_bytes",
                code="no_room",
                remedy="take a smaller node, or have scratch files made on another disk",
            )
        yield folder / "node"


def make_file(file: Path, scenario: BlockScenario) -> None:
    """Empty for an image's tables, which QEMU writes; else with all its blocks.

    :raise SetupError: it cannot be made.
    """
    try:
        with file.open("xb") as made:
            if scenario.cell.node is NodeKind.RAW:
                os.posix_fallocate(made.fileno(), 0, scenario.size_bytes)
    except OSError as error:
        raise SetupError(
            f"{file.parent.parent} takes no file of that size: {error.strerror}",
            field="size_bytes",
            code="no_room",
            remedy="take a smaller node, or have scratch files made on another disk",
        ) from error


async def _finish_node(qemu: BenchQemu, file: Path | None, scenario: BlockScenario) -> None:
    """Put the node's format on its file, whose name is not needed then: it goes with QEMU."""
    if file is None:
        return
    kind = scenario.cell.node
    try:
        if kind is NodeKind.QCOW2:
            await make_qcow2(qemu.monitor, FILE, scenario.size_bytes)
        added = {"driver": kind.value, "node-name": NODE, "file": FILE}
        await qemu.monitor.execute("blockdev-add", added)
    except CommandRefused as refusal:
        raise SetupError(f"the node cannot be made: {refusal.message}") from refusal
    await asyncio.to_thread(file.unlink)


class Tuned(Protocol):
    """What tuning needs of a :class:`~vmtune.hypervisor.protocol.Driver`."""

    async def vm_facts(self, vm: UUID, /) -> VmFacts:
        """See the driver's."""

    async def write_and_read(
        self, vm: UUID, changes: Sequence[Change], tunables: Collection[str], /
    ) -> dict[str, Reading]:
        """See the driver's."""


async def tune(driver: Tuned, vm: UUID, scenario: BlockScenario) -> tuple[str, PoolForecast]:
    """Set what is set on a running QEMU; its version, and what the pool model says of it.

    :raise VmtuneError: it refuses.
    """
    facts = await driver.vm_facts(vm)
    changes = [
        Change(name, value)
        for name, value in scenario.values.items()
        if settable()[name].route is Route.LIVE
    ]
    if changes:
        ordered = in_order(changes, facts.readings)
        read = await driver.write_and_read(vm, ordered, [each.tunable for each in changes])
        for change in changes:
            reading = read[change.tunable]
            found: list[object] = [*reading.parts.values()] or [reading.value]
            if any(value != change.value for value in found):
                raise CommandRefused(
                    f"{change.tunable} was set to {change.value}, and reads "
                    f"{', '.join(map(str, found))}",
                    field=f"values.{change.tunable}",
                    code="not_effective",
                )
    return str(facts.qemu), await asyncio.to_thread(predict_pool, facts, scenario)


def predict_pool(facts: VmFacts, scenario: BlockScenario) -> PoolForecast:
    """The pool model's estimate for a load. Reads this machine's limits."""
    cell = scenario.cell
    limit = read_local_host().sysctls.get("vm_max_map_count")
    most = cell.iodepth if scenario.driver else min(cell.iodepth, REQUESTS_PER_CONNECTION)
    requests = most * cell.numjobs
    room = headroom(facts, limit)
    model = pool_model(geometry_of(facts), requests)
    return PoolForecast(
        design=model.design.value,
        requests=requests,
        soft_limit=model.soft_limit,
        hard_limit=None,
        max_pooled=model.max_pooled,
        max_maps=model.max_maps(room.other_maps),
        limit=limit,
    )
