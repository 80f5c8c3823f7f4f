"""How a migration ended: found out by looking, never assumed; and what is put back after."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import structlog

from vmtune.engine.arrival import read_arrived
from vmtune.engine.setting import restore, set_again
from vmtune.errors import (
    CommandRefused,
    NotFound,
    OutcomeUnknown,
    Problem,
    VmtuneError,
)
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import Connection, VmState
from vmtune.model.migration.controller_record import ReaperEnd
from vmtune.model.migration.record import (
    AbortState,
    Migration,
    MigrationState,
    Snapshot,
    Totals,
    Trigger,
)
from vmtune.model.migration.steps import Deed
from vmtune.model.plan.changes import Change
from vmtune.model.plan.outcome import Outcome, Status, judge
from vmtune.model.plan.readback import when_reaped
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.tunable import Route, Side
from vmtune.services.hosts.hosts import HostService
from vmtune.services.migrations.end_state import (
    LOOK_AGAIN_S,
    SETTLES_WITHIN_S,
    End,
    Evidence,
    look,
)
from vmtune.services.migrations.records import Fields
from vmtune.services.tuning.applications import ApplyService

log = structlog.get_logger(__name__)


class Settler:
    """Finds out how a migration ended, puts back what was set for it, and says so."""

    def __init__(
        self, hosts: HostService, applications: ApplyService, tunables: TunableRegistry
    ) -> None:
        self._hosts = hosts
        self._applications = applications
        self._tunables = tunables

    async def settle(self, record: Migration, evidence: Evidence) -> Fields:
        """What completes the record of a migration that is no longer carried."""
        fields = Fields()
        if not record.destination:
            record = replace(record, destination=await self._hosts.find_other(record))
            fields["destination"] = record.destination
        source = await self._hosts.driver(record.source)
        destination = await self._destination(record)
        end = await self._end(record, evidence, source, destination)
        fields |= Fields(state=end.state, failure=end.why, ended_at=datetime.now(UTC))
        if record.reaper is not None and record.reaper.end is ReaperEnd.RUNNING:
            record = replace(record, reaper=replace(record.reaper, end=ReaperEnd.INTERRUPTED))
            fields["reaper"] = record.reaper
        if end.state is MigrationState.UNKNOWN:
            return fields
        if end.state is MigrationState.COMPLETED:
            fields |= await self._completed(record, evidence, source, destination)
        else:
            paused = await _let_go_on(record, source)
            behind = await self._put_back(record, source)
            fields["problems"] = (*record.problems, *paused, *behind)
            ended = _settled(record, "the migration did not complete")
            fields["outcomes"] = tuple(ended.values())
        return fields

    async def _destination(self, record: Migration) -> Driver | None:
        """The destination's driver; None where an observed migration went nobody knows where, or
        to a host that was removed since."""
        if not record.destination:
            return None
        try:
            return await self._hosts.driver(record.destination)
        except NotFound:
            if record.trigger is Trigger.OBSERVED:
                return None
            raise

    async def _completed(
        self, record: Migration, evidence: Evidence, source: Driver, destination: Driver | None
    ) -> Fields:
        totals = await _totals(record.vm, evidence.snapshot, source, destination)
        if destination is None:
            ended = _settled(record, "it is not known where the VM is now")
            return Fields(totals=totals, outcomes=tuple(ended.values()))
        paused = await _let_go_on(record, destination)
        outcomes, missing = await self._arrived(record, destination, totals)
        if await self._resets(record):
            await _reset(record.vm, source, destination)
        behind = await _left_behind(record, source)
        problems = (*record.problems, *paused, *missing, *behind)
        return Fields(totals=totals, outcomes=outcomes, problems=problems)

    async def _resets(self, record: Migration) -> bool:
        """Whether both sides are to be reset. Of an observed migration without libvirt, what is
        set is somebody else's."""
        if record.trigger is Trigger.VMTUNE:
            return True
        host = await self._hosts.get(record.source)
        return host.connection is Connection.LIBVIRT

    async def _put_back(self, record: Migration, source: Driver) -> tuple[Problem, ...]:
        """Reset the source and restore its journal, but for what libvirt has put back by then;
        what stays behind is told."""
        if await self._resets(record):
            await _reset(record.vm, source)
        try:
            by_libvirt = await self._by_libvirt(record) if record.journal else frozenset()
            ours = [change for change in record.journal if change.tunable not in by_libvirt]
            outcomes = await restore(source, record.vm, ours) if ours else []
        except NotFound:
            return ()  # its QEMU is gone, and with it what was set
        except VmtuneError as error:
            return tuple(error.problems)
        return tuple(
            Problem(f"values.{o.tunable}", "not_put_back", o.reason, "set it by hand")
            for o in outcomes
            if o.status is not Status.REVERTED
        )

    async def _by_libvirt(self, record: Migration) -> frozenset[str]:
        """What libvirt puts back to what was there before the migration. The journal has what
        libvirt set for it, where vmtune changed that on the way."""
        facts = await self._hosts.facts(record.source)
        if facts.connection is not Connection.LIBVIRT:
            return frozenset()
        return frozenset(
            row.name
            for row in BUILT_IN.on(Route.MIGRATE)
            if row.libvirt is not None
            and (facts.libvirt is None or row.libvirt.since <= facts.libvirt)
        )

    async def _end(
        self, record: Migration, evidence: Evidence, source: Driver, destination: Driver | None
    ) -> End:
        asked = record.abort is AbortState.REQUESTED
        step = record.did(Deed.ABORT)
        stopped = MigrationState.CANCELLED if asked or step else MigrationState.FAILED
        if evidence.handle is not None and evidence.handle.done:
            try:
                await evidence.handle.wait()
            except CommandRefused as refusal:
                by_step = f"aborted by a convergence step: {step.reason}" if step else ""
                return End(stopped, "aborted as asked" if asked else by_step or refusal.message)
            except OutcomeUnknown:
                log.info("the migration's end was not heard: looking", migration_id=str(record.id))
            else:
                return End(MigrationState.COMPLETED)
        error = evidence.error
        if record.state in (MigrationState.QUEUED, MigrationState.PREPARING):
            why = str(error) if error else "it was stopped before it began"
            return End(stopped, why)
        if isinstance(error, CommandRefused) and evidence.snapshot is None:
            return End(stopped, str(error))
        return await look(record, stopped, evidence, source, destination)

    async def _arrived(
        self, record: Migration, destination: Driver, totals: Totals | None
    ) -> tuple[tuple[Outcome, ...], tuple[Problem, ...]]:
        """The outcomes on the destination, and what the standing application lacks there."""
        outcomes = _settled(record, "it ended before it could be read back")
        destinations = {row.name for row in self._tunables.on(side=Side.DESTINATION)}
        late = [
            name
            for name, outcome in outcomes.items()
            if outcome.status is Status.UNKNOWN and name in destinations
        ]
        for outcome in await _read_there(destination, record, late) if late else ():
            outcomes[outcome.tunable] = outcome
        live_rows = {row.name for row in self._tunables.on(Route.LIVE)}
        live = [
            Change(name, record.wanted[name])
            for name, outcome in outcomes.items()
            if name in live_rows and outcome.status is Status.EFFECTIVE
        ]
        for outcome in await set_again(destination, record.vm, live) if live else ():
            outcomes[outcome.tunable] = outcome
        if totals and totals.missed_zero_copy and "zero_copy_send" in outcomes:
            note = "the kernel copied all the same: the route or card lacks zero-copy"
            outcomes["zero_copy_send"] = replace(outcomes["zero_copy_send"], reason=note)
        carried = await self._applications.carry_over(record.vm, destination)
        missing = tuple(
            Problem(f"values.{o.tunable}", "not_carried_over", o.reason, "apply it again")
            for o in carried
            if o.status is not Status.EFFECTIVE
        )
        return tuple(outcomes.values()), missing


async def _totals(
    vm: UUID, snapshot: Snapshot | None, source: Driver, destination: Driver | None
) -> Totals | None:
    """The figures of a completed migration, from whoever has them; None if nobody has."""
    deadline = time.monotonic() + SETTLES_WITHIN_S
    while True:
        if snapshot is not None and snapshot.totals is not None:
            return snapshot.totals
        try:
            found = await destination.completed(vm) if destination is not None else None
            if found is not None:
                return _with_missed(found, snapshot)
            snapshot = await source.migration(vm)
        except NotFound:
            if destination is None:
                return None  # its QEMU is gone, and nobody else can be asked
        except VmtuneError as error:
            log.debug("no figures yet", vm=str(vm), reason=str(error))
        if time.monotonic() > deadline:
            return None
        await asyncio.sleep(LOOK_AGAIN_S)


def _with_missed(totals: Totals, snapshot: Snapshot | None) -> Totals:
    """libvirt does not tell of silent copies; the last sample does."""
    sample = snapshot.sample if snapshot else None
    missed = sample.missed_zero_copy if sample else 0
    return replace(totals, missed_zero_copy=max(totals.missed_zero_copy, missed))


def _settled(record: Migration, why: str) -> dict[str, Outcome]:
    """The record's outcomes; what still waits to be read back is unknown now, and *why*."""
    known = {o.tunable: o for o in record.outcomes}
    settled: dict[str, Outcome] = {}
    for name, wanted in record.wanted.items():
        before = known.get(name, Outcome(name, Status.PENDING_MIGRATION, wanted))
        settled[name] = before
        if before.status is not Status.PENDING_MIGRATION:
            continue
        settled[name] = Outcome(name, Status.UNKNOWN, wanted, None, why)
        if name in _CONTROLLED:
            settled[name] = when_reaped(before, record.reaper, record.trigger is Trigger.OBSERVED)
    return settled


async def _read_there(destination: Driver, record: Migration, names: list[str]) -> list[Outcome]:
    try:
        readings = await read_arrived(destination, record.vm, names)
    except VmtuneError as error:
        return [
            Outcome(name, Status.UNKNOWN, record.wanted[name], None, error.message)
            for name in names
        ]
    return [judge(name, record.wanted[name], readings[name]) for name in names if name in readings]


_CONTROLLED = frozenset(row.name for row in BUILT_IN.on(Route.CONTROL))


async def _reset(vm: UUID, *drivers: Driver) -> None:
    for driver in drivers:
        try:
            await driver.reset_after_migration(vm)
        except VmtuneError as error:
            log.info("not reset", vm=str(vm), reason=str(error))


async def _left_behind(record: Migration, source: Driver) -> tuple[Problem, ...]:
    """What libvirt keeps on the source where it was ended before it heard of the arrival: the
    VM's old copy, paused. A source that cannot be asked is given a while to answer; what is just
    leaving may be gone at the second look."""
    deadline = time.monotonic() + SETTLES_WITHIN_S
    looks = 0
    while time.monotonic() < deadline:
        try:
            if await source.vm_state(record.vm) is not VmState.PAUSED:
                return ()
            looks += record.vm not in await source.outgoing()
            if looks > 1:
                return (
                    Problem(
                        "vm",
                        "left_behind",
                        f"{record.source} still holds the VM's old copy, paused: its libvirt "
                        "was ended before it heard that the VM had arrived",
                        f"never resume it, its disks are in use on {record.destination}; "
                        f"`virsh destroy {record.vm}` on {record.source} ends it",
                    ),
                )
        except NotFound:
            return ()
        except VmtuneError as error:
            log.debug("the source does not say", vm=str(record.vm), reason=str(error))
        await asyncio.sleep(LOOK_AGAIN_S)
    return ()


async def _let_go_on(record: Migration, driver: Driver) -> tuple[Problem, ...]:
    """Let a guest that a step has paused go on, where it now is. libvirt does so by itself; it
    takes a moment on either side."""
    if record.did(Deed.PAUSE) is None:
        return ()
    deadline = time.monotonic() + SETTLES_WITHIN_S
    while True:
        try:
            state = await driver.vm_state(record.vm)
            if state is VmState.RUNNING:
                return ()
            if state is VmState.PAUSED:
                await driver.resume(record.vm)
                continue
            why = f"it is {state.value}"
        except VmtuneError as error:
            why = error.message
        if time.monotonic() > deadline:
            remedy = "resume it by hand"
            return (Problem("vm", "still_paused", f"a step has paused it, and {why}", remedy),)
        await asyncio.sleep(LOOK_AGAIN_S)
