"""The block benchmark against a VM that runs: a node of its QEMU, or a null node made for it.

The VM's own nodes are exported read-only, and never written to. Its guest continues to run and
shares the host with the load: the figures are of a QEMU as it is, and CPU time holds the guest's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from vmtune.bench.block.command_lines import fio_line, writes
from vmtune.bench.block.live_order import NOTE, LiveOrder, check_live
from vmtune.bench.block.load import Watch, load
from vmtune.bench.block.order import BlockPhase, BlockResult
from vmtune.bench.block.run import Reporter, around, block_result
from vmtune.bench.block.stage import predict_pool
from vmtune.bench.migration.order import RunProgress
from vmtune.bench.migration.stage import finish
from vmtune.bench.model.scenario.block import LoadPhase
from vmtune.bench.run_folder import run_folder
from vmtune.errors import CommandRefused, Conflict, NotFound, SetupError
from vmtune.hypervisor.linux.qemu_process import QemuProcess
from vmtune.hypervisor.qemu.block_allowlist import NODE, SOCKET
from vmtune.hypervisor.qemu.block_export import Export

ENDED = "QEMU has ended: see the VM's log"


async def run_live(order: LiveOrder, on_progress: Callable[[RunProgress], None]) -> BlockResult:
    """Export the node, load it with fio, and remove the export.

    A fio that fails, and a QEMU that ends meanwhile, are results. Cancelling the task ends the
    run: the export is removed, and the cancellation is re-raised.

    :raise VmtuneError: it cannot be done on this VM; nothing was left behind.
    """
    scenario = order.scenario
    reporter = Reporter(scenario.longest_s, on_progress)
    reporter.report(BlockPhase.STARTING)
    facts = await check_live(order)
    assert facts.pid is not None, "it was checked"
    pid = facts.pid
    pool_forecast = await asyncio.to_thread(predict_pool, facts, scenario)
    process = QemuProcess(pid)

    def alive() -> bool:
        return process.memory_bytes() is not None

    async with _exported(order, pid) as (export, folder):
        watch = Watch(pid)
        reporter.start(watch)
        await around(watch, LoadPhase.BEFORE, reporter)
        output = folder / "fio.json"
        done = await load(
            fio_line(scenario, export.uri, output),
            folder,
            output,
            scenario.ramp_s + scenario.runtime_s,
            watch,
            alive,
            lambda: reporter.report(BlockPhase.LOADING),
        )
        ended = not alive()
        if not ended:
            await around(watch, LoadPhase.AFTER, reporter)
        reporter.report(BlockPhase.CLEANING_UP)
    return block_result(watch, done, str(facts.qemu), ENDED if ended else "", pool_forecast)


@asynccontextmanager
async def _exported(order: LiveOrder, pid: int) -> AsyncIterator[tuple[Export, Path]]:
    """The node's export, and the run's folder, which names it for the cleanup after a kill."""
    scenario = order.scenario
    with run_folder(order.folder) as folder:
        await asyncio.to_thread(_let_in, folder, pid)
        note = json.dumps({"uri": order.driver.uri, "vm": str(order.vm)})
        await asyncio.to_thread((folder / NOTE).write_text, note)
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
                mine = False  # there is another run's export, or another program's server
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
