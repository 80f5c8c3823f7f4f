"""The block benchmark against a VM that runs: a node of its QEMU, or a null node made for it.

The VM's own nodes are exported read-only, and never written to. Its guest goes on, and shares what
it is on with the load: the figures are of a QEMU as it is, and CPU time holds the guest's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from vmtune.bench.block_line import fio_line, writes
from vmtune.bench.block_load import Load, Watch, load
from vmtune.bench.block_order import BlockPhase, BlockProgress, BlockResult
from vmtune.bench.block_run import Telling, around, fio_failure
from vmtune.bench.block_stage import foresee
from vmtune.bench.run_folder import end_processes_of, left_behind, run_folder
from vmtune.bench.stage import finish
from vmtune.domain.block import BlockRecord, BlockScenario, Foreseen, LoadPhase
from vmtune.domain.matrix_cells import NodeKind
from vmtune.domain.runs import RunState
from vmtune.domain.versions import Version
from vmtune.drivers.base import Driver
from vmtune.drivers.block_allowed import NODE, SOCKET
from vmtune.drivers.block_export import Export
from vmtune.drivers.qemu_process import QemuProcess
from vmtune.errors import (
    CommandRefused,
    Conflict,
    InvalidInput,
    NotFound,
    OperationInProgress,
    SetupError,
    VmtuneError,
)
from vmtune.lab.programs import require_programs

DEFAULT_LIVE_FOLDER = Path("/run/vmtune-live")
"""Its folders have sockets that QEMUs make, under whichever user they run."""
_NOTE = "live.json"
_CLIENTS_ON_IOTHREADS_SINCE = Version(9)
"""QEMU's nbd/server.c has a lock for its clients from then on. 7.2 was seen to end itself with
``nbd_blockdev_client_closed: Assertion `qemu_in_main_thread() && nbd_server' failed``."""


@dataclass(frozen=True, slots=True)
class LiveOrder:
    """A measurement to do on a running VM.

    :param scenario: without values: a profile that is applied before sets them.
    :param node: the name of the VM's block node; empty for a null node that is made for it.
    :param folder: each run has a folder of its own in here.
    """

    scenario: BlockScenario
    driver: Driver
    vm: UUID
    node: str = ""
    folder: Path = DEFAULT_LIVE_FOLDER


async def run_live(order: LiveOrder, on_progress: Callable[[BlockProgress], None]) -> BlockResult:
    """Export the node, load it with fio, and remove the export.

    A fio that fails, and a QEMU that ends meanwhile, are results. Cancelling the task ends the
    run: the export is removed, and the cancellation goes on.

    :raise VmtuneError: it cannot be done on this VM; nothing was left behind.
    """
    scenario = order.scenario
    telling = Telling(scenario.longest_s, on_progress)
    telling.tell(BlockPhase.STARTING)
    require_programs("fio", "setpriv")
    pid, version, foreseen = await _look(order)
    process = QemuProcess(pid)

    def alive() -> bool:
        return process.memory_bytes() is not None

    async with _exported(order, pid) as (export, folder):
        watch = Watch(pid)
        telling.begins(watch)
        await around(watch, LoadPhase.BEFORE, telling)
        output = folder / "fio.json"
        done = await load(
            fio_line(scenario, export.uri, output),
            folder,
            output,
            scenario.ramp_s + scenario.runtime_s,
            watch,
            alive,
            lambda: telling.tell(BlockPhase.LOADING),
        )
        ended = not alive()
        if not ended:
            await around(watch, LoadPhase.AFTER, telling)
        telling.tell(BlockPhase.TIDYING)
    return _result(watch, done, version, foreseen, ended)


async def clear_live(folder: Path, open_driver: Callable[[str], Driver]) -> list[UUID]:
    """Remove the exports of runs that were killed; the VMs that had one.

    Where a host cannot be reached, the run's folder stays, for the next time.

    :param folder: as in the runs' orders.
    :param open_driver: a driver for the address of a host.
    """
    cleared = []
    for each in left_behind(folder):
        with contextlib.suppress(TimeoutError):
            await asyncio.to_thread(end_processes_of, each)
        try:
            note = json.loads((each / _NOTE).read_text())
            vm, driver = UUID(note["vm"]), open_driver(note["uri"])
        except (OSError, ValueError, KeyError, TypeError):
            shutil.rmtree(each, ignore_errors=True)  # it had not come to an export
            continue
        try:
            with contextlib.suppress(NotFound):  # the VM has gone, and its export with it
                await driver.remove_export(vm)
                cleared.append(vm)
            shutil.rmtree(each, ignore_errors=True)
        except VmtuneError:
            continue
        finally:
            await driver.close()
    with contextlib.suppress(OSError):  # others are there, or it was never made
        await asyncio.to_thread(folder.rmdir)
    return cleared


async def _look(order: LiveOrder) -> tuple[int, str, Foreseen]:
    """QEMU's process and version, and what is foreseen; refuse what cannot be done."""
    scenario, driver = order.scenario, order.driver
    if scenario.values:
        raise InvalidInput(
            "a running VM is measured as it is",
            field="values",
            code="not_settable",
            remedy="apply a profile with these values to it first",
        )
    if order.node and writes(scenario):
        raise InvalidInput(
            f"{scenario.cell.rw} would write to a node of a running VM",
            field="cell.rw",
            code="read_only",
            remedy="use read or randread, or leave the node out: a null node is then made for it",
        )
    if not order.node and scenario.cell.node is not NodeKind.NULL:
        raise InvalidInput(
            f"no {scenario.cell.node} node is made in a running VM",
            field="cell.node",
            code="needs_node",
            remedy="name a node of the VM, or use null-co",
        )
    facts = await driver.vm_facts(order.vm)
    if facts.pid is None:
        raise SetupError(
            f"{facts.name} does not run, or not on this machine, or its process cannot be seen",
            field="vm",
            code="not_local",
            remedy="run the benchmark where its QEMU runs, as root",
        )
    if order.node and facts.iothreads and facts.qemu < _CLIENTS_ON_IOTHREADS_SINCE:
        raise SetupError(
            f"QEMU {facts.qemu} dies when an NBD client of a node on an iothread hangs up, and "
            f"{facts.name} has iothreads",
            field="node",
            code="qemu_would_die",
            remedy="leave the node out: a null node is made for it, on the main loop; or use "
            f"QEMU {_CLIENTS_ON_IOTHREADS_SINCE} or later",
        )
    if (await driver.migration(order.vm)).status.running:
        raise OperationInProgress(
            f"{facts.name} migrates", field="vm", remedy="wait until it has arrived"
        )
    nodes = {node.name for node in await driver.block_nodes(order.vm)}
    if order.node and order.node not in nodes:
        known = ", ".join(sorted(nodes)) or "none"
        raise InvalidInput(
            f"{facts.name} has no block node {order.node[:80]!r}",
            field="node",
            code="unknown_node",
            remedy=f"there are {known}; leave it out for a null node that is made for it",
        )
    foreseen = await asyncio.to_thread(foresee, facts, scenario.cell)
    return facts.pid, str(facts.qemu), foreseen


@asynccontextmanager
async def _exported(order: LiveOrder, pid: int) -> AsyncIterator[tuple[Export, Path]]:
    """The node's export, and the run's folder, which tells whoever comes after a kill of it."""
    scenario = order.scenario
    with run_folder(order.folder) as folder:
        await asyncio.to_thread(_let_in, folder, pid)
        note = json.dumps({"uri": order.driver.uri, "vm": str(order.vm)})
        await asyncio.to_thread((folder / _NOTE).write_text, note)
        scratch = not order.node
        export = Export(
            node=order.node or NODE,
            socket=folder / SOCKET,
            writable=scratch and writes(scenario),
            scratch_bytes=scenario.size_bytes if scratch else 0,
        )
        mine = True
        try:
            try:
                await _add(order, export)
            except Conflict:
                mine = False  # there is another run's export, or somebody else's server
                raise
            yield export, folder
        finally:
            if mine:
                await finish(_remove(order))


async def _add(order: LiveOrder, export: Export) -> None:
    try:
        await order.driver.export_node(order.vm, export)
    except CommandRefused as refusal:
        if "socket" not in refusal.message:
            raise
        raise SetupError(
            f"QEMU cannot make a socket in {order.folder}: {refusal.message}",
            field="folder",
            code="not_writable_for_qemu",
            remedy="name a folder that QEMU sees, and that its user, and the profile that AppArmor "
            "or SELinux confines it by, let it write to",
        ) from refusal


async def _remove(order: LiveOrder) -> None:
    with contextlib.suppress(NotFound, CommandRefused):  # the VM has ended, and all with it
        await order.driver.remove_export(order.vm)


def _let_in(folder: Path, pid: int) -> None:
    """Let the user that QEMU runs as make its socket."""
    with contextlib.suppress(OSError):
        user = Path(f"/proc/{pid}").stat()
        if user.st_uid != os.geteuid():
            os.chown(folder, user.st_uid, user.st_gid)
            folder.parent.chmod(0o711)


def _result(watch: Watch, done: Load, version: str, foreseen: Foreseen, ended: bool) -> BlockResult:
    record = BlockRecord(
        qemu=version,
        load_ms=done.begun_ms,
        load_ended_ms=done.ended_ms,
        measured_ms=done.measured_ms,
        ended_ms=watch.at_ms(),
        fio=done.document,
        fio_said=done.said,
        fio_status=done.status,
        processes=tuple(watch.processes),
        cpu=tuple(watch.cpu),
        foreseen=foreseen,
        qemu_ended="ended" if ended else "",
    )
    failure = "QEMU has ended: see the VM's log" if ended else fio_failure(done)
    return BlockResult(RunState.FAILED if failure else RunState.COMPLETED, record, failure)
