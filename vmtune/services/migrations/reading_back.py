"""What QEMU runs with while a VM migrates, held against what was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

import structlog

from vmtune.errors import VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import Connection, Reading
from vmtune.model.migration.record import Migration
from vmtune.model.plan.outcome import Outcome
from vmtune.model.plan.readback import while_migrating
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.services.hosts.hosts import HostService

log = structlog.get_logger(__name__)


async def read_back(
    hosts: HostService,
    record: Migration,
    before: Iterable[Outcome],
    source: Driver,
    tunables: TunableRegistry,
) -> list[Outcome]:
    """The outcomes by what both sides say now; where one cannot be asked, they are unknown.

    :param before: the outcomes so far.
    """
    known = list(before)
    names = [outcome.tunable for outcome in known]
    nothing = dict.fromkeys(names, Reading(None, why_unknown="it was not read"))
    try:
        now = {**nothing, **await source.read(record.vm, names)}
    except VmtuneError as error:
        now = dict.fromkeys(names, Reading(None, why_unknown=error.message))
    there = await _read_there(hosts, record.destination, record.vm, names)
    return [while_migrating(outcome, now, there, tunables) for outcome in known]


async def _read_there(
    hosts: HostService, destination: str, vm: UUID, names: list[str]
) -> Mapping[str, Reading]:
    """Readings of the destination; none under libvirt, which lets nobody ask while a VM
    arrives."""
    host = await hosts.get(destination)
    if not names or host.connection is Connection.LIBVIRT:
        return {}
    try:
        return await (await hosts.driver(destination)).read(vm, names)
    except VmtuneError as error:
        log.info("destination not read back", vm=str(vm), reason=str(error))
        return {}
