"""The block benchmark on a VM that runs: its orders, whether it is possible, and the cleanup
after a run that was killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from vmtune.bench.model.scenario.block import BlockScenario
from vmtune.bench.model.scenario.block_target import LiveTarget
from vmtune.bench.model.scenario.matrix_cells import BlockCell
from vmtune.bench.run_folder import end_processes_of, left_behind
from vmtune.errors import (
    CommandRefused,
    InvalidInput,
    NotFound,
    OperationInProgress,
    SetupError,
    VmtuneError,
)
from vmtune.hypervisor.linux.local_host import read_local_host
from vmtune.hypervisor.protocol import Driver
from vmtune.hypervisor.qemu.block_export import REQUESTS_PER_CONNECTION
from vmtune.hypervisor.qemu.guest_agent import ANSWERS_WITHIN_S, GuestAgent
from vmtune.lab.programs import require_programs
from vmtune.model.host.facts import VmFacts
from vmtune.model.host.pools import MAPS_PER_STACK, OTHER_MAPS, WARNING_PERCENT

DEFAULT_LIVE_FOLDER = Path("/run/vmtune-live")
"""Its folders have sockets that QEMUs make, under whichever user they run."""
NOTE = "live.json"
FIO = "fio"
_AT_A_HANG_UP = 40
"""Coroutines that QEMU 10's NBD server was seen to have at most for each client that hangs up, for
a node on the main loop (tests/perf/pools/pool_model.py). For a node on an iothread there is no
bound: the iothread starts coroutines for the lost connection until the main loop closes it
(nbd/server.c: nbd_trip, client_close), and a main loop that is held meanwhile lets QEMU reach its
limit of memory maps. QEMU 10.0 was seen to end so, and 7.2 ends itself with
``nbd_blockdev_client_closed: Assertion `qemu_in_main_thread() && nbd_server' failed``."""


@dataclass(frozen=True, slots=True)
class LiveOrder:
    """A measurement to do on a running VM, of a node of its QEMU.

    :param scenario: its target is the VM.
    :param folder: each run has a folder of its own in here.
    """

    scenario: BlockScenario
    driver: Driver
    folder: Path = DEFAULT_LIVE_FOLDER

    @property
    def target(self) -> LiveTarget:
        """The VM, and which node of it."""
        assert self.scenario.target is not None, "it is not a running VM's"
        return self.scenario.target

    @property
    def vm(self) -> UUID:
        """The VM."""
        return self.target.vm

    @property
    def node(self) -> str:
        """The name of the VM's node; empty for a null node that is made for it."""
        return self.target.node


@dataclass(frozen=True, slots=True)
class GuestOrder:
    """A measurement to do in a guest.

    :param scenario: its target has the disk, as the guest calls it.
    :param pid: of the VM's QEMU, on this machine; *version* is its version.
    """

    scenario: BlockScenario
    agent: GuestAgent
    pid: int
    version: str = ""

    @property
    def device(self) -> str:
        """What is read: ``/dev/vdb``."""
        assert self.scenario.target is not None, "it is not a running VM's"
        return self.scenario.target.device


async def check_live(order: LiveOrder) -> VmFacts:
    """The VM, where its node can be exported and loaded. Changes nothing.

    :raise VmtuneError: it cannot be, and why.
    """
    driver = order.driver
    require_programs(FIO, "setpriv")
    facts = await check_here(driver, order.vm)
    await asyncio.to_thread(_check_maps, facts, order.scenario.cell)
    nodes = {node.name: node for node in await driver.block_nodes(order.vm)}
    if order.node and order.node not in nodes:
        known = ", ".join(sorted(nodes)) or "none"
        raise InvalidInput(
            f"{facts.name} has no block node {order.node[:80]!r}",
            field="target.node",
            code="unknown_node",
            remedy=f"there are {known}; leave it out for a null node that is made for it",
        )
    if order.node and not nodes[order.node].on_main_loop:
        usable = ", ".join(sorted(name for name, node in nodes.items() if node.on_main_loop))
        raise SetupError(
            f"an iothread of {facts.name} may handle {order.node[:80]!r}, and a QEMU can die when "
            "an NBD client of such a node disconnects",
            field="target.node",
            code="qemu_would_die",
            remedy="leave the node out: a null node is made for it, on the main loop"
            + (f"; or take a node that the main loop handles: {usable}" if usable else ""),
        )
    return facts


def _check_maps(facts: VmFacts, cell: BlockCell) -> None:
    """:raise SetupError: the load could bring QEMU near the limit of its memory maps, at which it
    ends itself, and its guest with it.
    """
    limit = read_local_host().sysctls.get("vm_max_map_count")
    now = facts.maps.total if facts.maps is not None else OTHER_MAPS
    each = min(cell.iodepth, REQUESTS_PER_CONNECTION) + _AT_A_HANG_UP
    stacks = facts.maps.stacks_per_coroutine if facts.maps is not None else 1
    most = now + MAPS_PER_STACK * stacks * cell.numjobs * each
    if limit is not None and most * 100 > limit * WARNING_PERCENT:
        raise SetupError(
            f"{facts.name} has {now:,} memory maps, and could have {most:,} under this load, where "
            f"QEMU ends itself at {limit:,} (vm.max_map_count)",
            field="cell.numjobs",
            code="maps_would_run_out",
            remedy=f"use fewer jobs, or run: sysctl -w vm.max_map_count={2 * most}",
        )


async def check_here(driver: Driver, vm: UUID) -> VmFacts:
    """A VM that runs on this machine, and does not migrate.

    :raise VmtuneError: it does not, or is not to be seen.
    """
    facts = await driver.vm_facts(vm)
    if facts.pid is None:
        raise SetupError(
            f"{facts.name} does not run, or not on this machine, or its process cannot be seen",
            field="target.vm",
            code="not_local",
            remedy="start it, and run the benchmark with the vmtune of the machine on which it "
            "runs, as root",
        )
    if (await driver.migration(vm)).status.running:
        raise OperationInProgress(
            f"{facts.name} migrates", field="target.vm", remedy="wait until it has arrived"
        )
    return facts


async def check_guest(agent: GuestAgent) -> None:
    """Check that an agent answers, and that its guest has fio, by asking fio for its version.

    :raise HostUnreachable: no agent answers.
    :raise SetupError: the VM has no channel for one, or fio cannot be run.
    """
    try:
        done = await agent.run(FIO, ["--version"], ANSWERS_WITHIN_S, lambda: None)
    except CommandRefused as refusal:
        raise no_fio(refusal.message) from refusal
    if done.status:
        raise no_fio((done.err or done.out).strip()[-200:] or f"status {done.status}")


def no_fio(why: str) -> SetupError:
    """The error of a guest without fio, or whose agent runs nothing."""
    return SetupError(
        f"fio cannot be run in the guest: {why}",
        field="target.device",
        code="no_fio_in_guest",
        remedy="install fio in the guest, and let its agent take guest-exec and guest-exec-status",
    )


DriverOf = Callable[[str], AbstractAsyncContextManager[Driver]]
"""A driver for the address of a host, for as long as the block lasts."""


async def clear_live(folder: Path, driver_of: DriverOf) -> list[UUID]:
    """Remove the exports of runs that were killed; the VMs that had one.

    Where a host cannot be reached, the run's folder stays, for the next time.

    :param folder: as in the runs' orders.
    """
    cleared = []
    for each in left_behind(folder):
        with contextlib.suppress(TimeoutError):
            await asyncio.to_thread(end_processes_of, each)
        try:
            note = json.loads((each / NOTE).read_text())
            vm, uri = UUID(note["vm"]), str(note["uri"])
        except (OSError, ValueError, KeyError, TypeError):
            shutil.rmtree(each, ignore_errors=True)  # it had not reached the export
            continue
        with contextlib.suppress(VmtuneError):
            async with driver_of(uri) as driver:
                with contextlib.suppress(NotFound):  # the VM has gone, and its export with it
                    await driver.remove_export(vm)
                    cleared.append(vm)
                shutil.rmtree(each, ignore_errors=True)
    with contextlib.suppress(OSError):  # others are there, or it was never made
        await asyncio.to_thread(folder.rmdir)
    return cleared
