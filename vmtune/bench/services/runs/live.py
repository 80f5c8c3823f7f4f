"""Measuring VMs that run: which VM a run is on, whether it can be, and what is cleared away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import structlog

from vmtune.bench.block.live_order import (
    FIO,
    GuestOrder,
    LiveOrder,
    check_guest,
    check_here,
    check_live,
    clear_live,
)
from vmtune.bench.machine.environment import Environment, Subject, read_environment, said_version
from vmtune.bench.model.runs.run import Run
from vmtune.bench.model.scenario.block import BlockScenario
from vmtune.bench.model.scenario.block_target import VM_HOST, VM_NAME
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import VmFacts
from vmtune.services.hosts.hosts import HostService

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LiveVm:
    """A VM that can be measured.

    :param host: as vmtune calls it.
    """

    host: str
    driver: Driver
    facts: VmFacts

    @property
    def options(self) -> dict[str, Any]:  # any JSON
        """What a run keeps of it."""
        return {VM_NAME: self.facts.name, VM_HOST: self.host}


class LiveRuns:
    """Knows the VMs that runs are on.

    :param folder: where runs have their sockets.
    """

    def __init__(self, hosts: HostService, folder: Path) -> None:
        self._hosts = hosts
        self._folder = folder
        self._clearing = asyncio.Lock()

    async def check(self, scenario: BlockScenario) -> LiveVm:
        """The VM, where it can be measured right now. Changes nothing.

        :raise NotFound: there is no such VM.
        :raise InvalidInput: it has no such node; with those that there are.
        :raise SetupError: its QEMU is not on this machine, fio is not installed here or there, or
            it has no channel for a guest agent.
        :raise HostUnreachable: its host does not answer, or its guest's agent.
        :raise OperationInProgress: it migrates.
        """
        host, driver, _ = await self._hosts.locate(_vm(scenario))
        return LiveVm(host, driver, await self._checked(scenario, driver))

    async def _checked(self, scenario: BlockScenario, driver: Driver) -> VmFacts:
        if not _in_guest(scenario):
            return await check_live(LiveOrder(scenario, driver, self._folder))
        facts = await check_here(driver, _vm(scenario))
        agent = await driver.guest_agent(facts.uuid)
        try:
            await check_guest(agent)
        finally:
            await agent.close()
        return facts

    async def order(
        self, run: Run, scenario: BlockScenario
    ) -> tuple[LiveOrder | GuestOrder, LiveVm]:
        """What to do for *run*, as requested.

        :raise VmtuneError: the VM is no longer there.
        """
        host = str(run.options[VM_HOST])
        driver = await self._hosts.driver(host)
        facts = await check_here(driver, _vm(scenario))
        assert facts.pid is not None, "it was checked"
        vm = LiveVm(host, driver, facts)
        if not _in_guest(scenario):
            return LiveOrder(scenario, driver, self._folder), vm
        agent = await driver.guest_agent(facts.uuid)
        return GuestOrder(scenario, agent, facts.pid, str(facts.qemu)), vm

    def environment(self, vm: LiveVm, scenario: BlockScenario) -> Environment:
        """Where the run is about to run: this machine, and the program that the VM's QEMU runs,
        which an update may have replaced since. Blocks for some milliseconds."""
        program = Path(f"/proc/{vm.facts.pid}/exe")
        found = {**read_environment(Subject(program, vm.facts.kvm, ""))}
        del found["network"]
        if not _in_guest(scenario):
            found[FIO] = said_version((FIO, "--version"))
        return found

    async def clear(self) -> None:
        """Remove the exports of runs that were killed. What cannot be reached is tried again the
        next time."""
        async with self._clearing:
            for vm in await clear_live(self._folder, self._driver_of):
                log.info("removed the export of a run that was killed", vm=str(vm))

    @asynccontextmanager
    async def _driver_of(self, uri: str) -> AsyncIterator[Driver]:
        async with self._hosts.driver_at(uri) as driver:
            yield driver


def _vm(scenario: BlockScenario) -> UUID:
    assert scenario.target is not None, "it is not a running VM's"
    return scenario.target.vm


def _in_guest(scenario: BlockScenario) -> bool:
    return scenario.target is not None and bool(scenario.target.device)
