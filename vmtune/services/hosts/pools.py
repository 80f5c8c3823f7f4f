"""The coroutine pools of running QEMUs: their model, their memory maps, and what is left."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import UUID

from vmtune.errors import CommandRefused, NotFound
from vmtune.hypervisor.protocol import Driver
from vmtune.model.findings.table import Finding
from vmtune.model.host.facts import VmFacts, VmState
from vmtune.model.host.pools import Headroom, headroom
from vmtune.model.preflight.pools import LIMIT, find_in_pools
from vmtune.services.hosts.hosts import HostService

_PRESENT = (VmState.RUNNING, VmState.PAUSED)


@dataclass(frozen=True, slots=True)
class PoolReport:
    """One VM's pool.

    :param findings: its findings.
    """

    host: str
    vm: VmFacts
    headroom: Headroom
    findings: tuple[Finding, ...]


class PoolService:
    """Reads pools. Changes nothing."""

    def __init__(self, hosts: HostService) -> None:
        self._hosts = hosts

    async def of_vm(self, vm: UUID) -> PoolReport:
        """A VM's pool.

        :raise NotFound: no host that answers has it.
        """
        host, _, facts = await self._hosts.locate(vm)
        return _report(host, facts, (await self._hosts.facts(host)).sysctls.get(LIMIT))

    async def of_host(self, host: str) -> list[PoolReport]:
        """The pools of a host's running VMs, the nearest to the limit first.

        :raise NotFound: no such host.
        :raise HostUnreachable: it does not answer.
        """
        limit = (await self._hosts.facts(host)).sysctls.get(LIMIT)
        driver = await self._hosts.driver(host)
        present = [vm.uuid for vm in await driver.list_vms() if vm.state in _PRESENT]
        found = await asyncio.gather(*(_facts(driver, uuid) for uuid in present))
        reports = [_report(host, facts, limit) for facts in found if facts is not None]
        return sorted(reports, key=lambda r: (-r.headroom.max_maps, r.vm.name))


async def _facts(driver: Driver, vm: UUID) -> VmFacts | None:
    try:
        return await driver.vm_facts(vm)
    except (NotFound, CommandRefused):
        return None  # it has just ended


def _report(host: str, facts: VmFacts, limit: int | None) -> PoolReport:
    running = facts.state in _PRESENT
    findings = tuple(find_in_pools(facts, limit)) if running else ()
    return PoolReport(host, facts, headroom(facts, limit), findings)
