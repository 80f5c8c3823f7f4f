"""Compares what QEMU runs with to what was requested: while a VM migrates, and on arrival."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

import structlog

from vmtune.engine.notes import Hosts
from vmtune.errors import NotFound, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import Connection, Reading
from vmtune.model.migration.record import Migration, Trigger
from vmtune.model.plan.outcome import Outcome, Status, judge
from vmtune.model.plan.readback import when_reaped, while_migrating
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.rows.reaper import REAPER
from vmtune.model.tunables.tunable import Side

log = structlog.get_logger(__name__)

_ANSWERS_WITHIN_S = 10.0
_RETRY_S = 0.2
_REAPED = frozenset(row.name for row in REAPER)


async def read_running(
    hosts: Hosts, vm: UUID, before: Iterable[Outcome], tunables: TunableRegistry
) -> list[Outcome]:
    """The outcomes by what both sides say now; where one cannot be asked, they are unknown.

    :param before: the outcomes so far.
    """
    known = list(before)
    names = [outcome.tunable for outcome in known]
    nothing = dict.fromkeys(names, Reading(None, why_unknown="it was not read"))
    try:
        now = {**nothing, **await (await hosts.source()).read(vm, names)}
    except VmtuneError as error:
        now = dict.fromkeys(names, Reading(None, why_unknown=error.message))
    there = await _read_destination(hosts, vm, names)
    return [while_migrating(outcome, now, there, tunables) for outcome in known]


async def _read_destination(hosts: Hosts, vm: UUID, names: list[str]) -> Mapping[str, Reading]:
    """Readings of the destination; none under libvirt, which allows no query while a VM arrives."""
    if not names or await hosts.connection() is Connection.LIBVIRT:
        return {}
    try:
        destination = await hosts.destination()
        return await destination.read(vm, names) if destination is not None else {}
    except VmtuneError as error:
        log.info("destination not read back", vm=str(vm), reason=str(error))
        return {}


def close_outcomes(record: Migration, why: str) -> dict[str, Outcome]:
    """The record's outcomes once the migration has ended; what still waits to be read back is
    unknown from now on, because of *why*. Pure."""
    known = {o.tunable: o for o in record.outcomes}
    # Those that nobody wanted, but were seen, stay.
    closed = {o.tunable: o for o in record.outcomes if o.wanted is None}
    for name, wanted in record.wanted.items():
        before = known.get(name, Outcome(name, Status.PENDING_MIGRATION, wanted))
        closed[name] = before
        if before.status is not Status.PENDING_MIGRATION:
            continue
        closed[name] = Outcome(name, Status.UNKNOWN, wanted, None, why)
        if name in _REAPED:
            closed[name] = when_reaped(before, record.reaper, record.trigger is Trigger.OBSERVED)
    return closed


async def read_on_arrival(
    record: Migration, destination: Driver, tunables: TunableRegistry
) -> dict[str, Outcome]:
    """The outcomes of a migration that has completed: the destination's own settings are read now,
    since they could not be before."""
    outcomes = close_outcomes(record, "it ended before it could be read back")
    its_own = {row.name for row in tunables.on(side=Side.DESTINATION)}
    names = [
        name
        for name, outcome in outcomes.items()
        if outcome.status is Status.UNKNOWN and name in its_own
    ]
    if not names:
        return outcomes
    try:
        readings = await read_arrived(destination, record.vm, names)
    except VmtuneError as error:
        readings = dict.fromkeys(names, Reading(None, why_unknown=error.message))
    for name in names:
        if name in readings:
            outcomes[name] = judge(name, record.wanted[name], readings[name])
    return outcomes


async def read_arrived(driver: Driver, vm: UUID, names: Collection[str]) -> Mapping[str, Reading]:
    """Read tunables on the destination. On a busy host libvirt is not done with the VM at once:
    it refuses, or lends nobody the monitor and no value is known, after QEMU on the source has
    completed. It is asked again for up to 10 s.

    :raise NotFound: the VM is not there.
    :raise VmtuneError: it could not be read all that time.
    """
    deadline = time.monotonic() + _ANSWERS_WITHIN_S
    while True:
        too_late = time.monotonic() > deadline
        try:
            readings = await driver.read(vm, names)
        except NotFound:
            raise
        except VmtuneError:
            if too_late:
                raise
        else:
            nothing_known = readings and all(r.why_unknown for r in readings.values())
            if too_late or not nothing_known:
                return readings
        await asyncio.sleep(_RETRY_S)
