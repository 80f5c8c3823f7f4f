"""How a migration ended: found out by looking, never assumed; and what is put back after."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

import structlog

from vmtune.domain.changes import Change
from vmtune.domain.controlled import ReaperEnd
from vmtune.domain.facts import VmState
from vmtune.domain.migration import (
    AbortState,
    Migration,
    MigrationState,
    QemuStatus,
    Snapshot,
    Totals,
)
from vmtune.domain.outcome import Outcome, Status, judge
from vmtune.domain.proving import when_reaped
from vmtune.domain.steps import Deed
from vmtune.domain.tunable_table import TUNABLES
from vmtune.domain.tunables import Route, Side
from vmtune.drivers.base import Driver, MigrationHandle
from vmtune.errors import (
    CommandRefused,
    NotFound,
    OutcomeUnknown,
    Problem,
    VmtuneError,
)
from vmtune.services.applications import ApplyService
from vmtune.services.carrying import restore, set_again
from vmtune.services.hosts import HostService
from vmtune.services.records import Fields

log = structlog.get_logger(__name__)

_LOOK_AGAIN_S = 0.2
_SETTLES_WITHIN_S = 5.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the process that carried a migration knows of its end; nothing after a restart.

    :param error: why a phase broke off.
    """

    handle: MigrationHandle | None = None
    snapshot: Snapshot | None = None
    error: VmtuneError | None = None


@dataclass(frozen=True, slots=True)
class _End:
    state: MigrationState
    why: str = ""


class Settler:
    """Finds out how a migration ended, puts back what was set for it, and says so."""

    def __init__(self, hosts: HostService, applications: ApplyService) -> None:
        self._hosts = hosts
        self._applications = applications

    async def settle(self, record: Migration, evidence: Evidence) -> Fields:
        """What completes the record of a migration that is no longer carried."""
        source = await self._hosts.driver(record.source)
        destination = await self._hosts.driver(record.destination)
        end = await self._end(record, evidence, source, destination)
        fields = Fields(state=end.state, failure=end.why, ended_at=datetime.now(UTC))
        if record.reaper is not None and record.reaper.end is ReaperEnd.RUNNING:
            record = replace(record, reaper=replace(record.reaper, end=ReaperEnd.INTERRUPTED))
            fields["reaper"] = record.reaper
        if end.state is MigrationState.UNKNOWN:
            return fields
        arrived = end.state is MigrationState.COMPLETED
        paused = await _let_go_on(record, destination if arrived else source)
        if arrived:
            totals = await _totals(record.vm, evidence.snapshot, source, destination)
            fields["totals"] = totals
            outcomes, missing = await self._arrived(record, destination, totals)
            fields["outcomes"] = outcomes
            fields["problems"] = (*paused, *missing)
            await _reset(record.vm, source, destination)
        else:
            fields["problems"] = (*paused, *await _put_back(record, source))
            ended = _settled(record, "the migration did not complete")
            fields["outcomes"] = tuple(ended.values())
        if record.abort is AbortState.REQUESTED:
            cancelled = end.state is MigrationState.CANCELLED
            fields["abort"] = AbortState.ABORTED if cancelled else AbortState.TOO_LATE
        return fields

    async def _end(
        self, record: Migration, evidence: Evidence, source: Driver, destination: Driver
    ) -> _End:
        asked = record.abort is AbortState.REQUESTED
        step = record.did(Deed.ABORT)
        stopped = MigrationState.CANCELLED if asked or step else MigrationState.FAILED
        if evidence.handle is not None and evidence.handle.done:
            try:
                await evidence.handle.wait()
            except CommandRefused as refusal:
                by_step = f"aborted by a convergence step: {step.reason}" if step else ""
                return _End(stopped, "aborted as asked" if asked else by_step or refusal.message)
            except OutcomeUnknown:
                log.info("the migration's end was not heard: looking", migration=str(record.id))
            else:
                return _End(MigrationState.COMPLETED)
        error = evidence.error
        if record.state in (MigrationState.QUEUED, MigrationState.PREPARING):
            why = str(error) if error else "it was stopped before it began"
            return _End(stopped, why)
        if isinstance(error, CommandRefused) and evidence.snapshot is None:
            return _End(stopped, str(error))
        return await _look(record, stopped, source, destination)

    async def _arrived(
        self, record: Migration, destination: Driver, totals: Totals | None
    ) -> tuple[tuple[Outcome, ...], tuple[Problem, ...]]:
        """The outcomes on the destination, and what the standing application lacks there."""
        outcomes = _settled(record, "it ended before it could be read back")
        late = [
            name
            for name, outcome in outcomes.items()
            if outcome.status is Status.UNKNOWN and TUNABLES[name].side is Side.DESTINATION
        ]
        for outcome in await _read_there(destination, record, late) if late else ():
            outcomes[outcome.tunable] = outcome
        live = [
            Change(name, record.wanted[name])
            for name, outcome in outcomes.items()
            if TUNABLES[name].route is Route.LIVE and outcome.status is Status.EFFECTIVE
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


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a host says of the VM.

    :param state: None where the host does not have it.
    :param silent: why the host cannot be asked; empty where it answered.
    :param status: its last outgoing migration, where it has the VM.
    """

    state: VmState | None = None
    silent: str = ""
    status: QemuStatus | None = None
    why: str = ""

    @property
    def present(self) -> bool:
        return self.state in (VmState.RUNNING, VmState.PAUSED)


async def _look(
    record: Migration, stopped: MigrationState, source: Driver, destination: Driver
) -> _End:
    """Ask both hosts, and ask again while they are not yet done. What was to be aborted before
    it began, and began all the same, is aborted here."""
    deadline = time.monotonic() + _SETTLES_WITHIN_S
    while True:
        here, there = await asyncio.gather(_see(source, record.vm), _see(destination, record.vm))
        if stopped is MigrationState.CANCELLED and here.status is not None and here.status.running:
            with suppress(VmtuneError):
                await source.abort_migration(record.vm)
        end = _conclude(here, there, stopped)
        if end.state is not MigrationState.UNKNOWN or time.monotonic() > deadline:
            return end
        await asyncio.sleep(_LOOK_AGAIN_S)


def _conclude(here: _Seen, there: _Seen, stopped: MigrationState) -> _End:
    """The end, from what both hosts say. Only a VM that runs on the destination has migrated."""
    if there.present and not here.present and not here.silent:
        return _End(MigrationState.COMPLETED)
    if there.state is VmState.RUNNING and here.silent:
        # QEMU lets the destination run only once the source has stopped for good.
        return _End(MigrationState.COMPLETED)
    if here.silent:
        return _End(MigrationState.UNKNOWN, f"the source cannot be asked: {here.silent}")
    if here.present and there.present:
        return _End(MigrationState.UNKNOWN, "both hosts have the VM: they are not yet done")
    if here.status is not None and here.status.running:
        return _End(MigrationState.UNKNOWN, f"QEMU says that it is {here.status.value}")
    if here.present:
        state = MigrationState.CANCELLED if here.status is QemuStatus.CANCELLED else stopped
        return _End(state, here.why or "it stopped while nobody watched; the VM is on the source")
    if there.silent:
        return _End(MigrationState.UNKNOWN, f"the destination cannot be asked: {there.silent}")
    return _End(MigrationState.FAILED, here.why or "the VM runs on neither host")


async def _see(driver: Driver, vm: UUID) -> _Seen:
    try:
        vms = await driver.list_vms()
    except VmtuneError as error:
        return _Seen(silent=error.message)
    state = next((v.state for v in vms if v.uuid == vm), None)
    if state not in (VmState.RUNNING, VmState.PAUSED):
        return _Seen(state)
    try:
        snapshot = await driver.migration(vm)
    except NotFound:
        return _Seen()
    except VmtuneError as error:
        return _Seen(silent=error.message)
    return _Seen(state, "", snapshot.status, snapshot.error)


async def _totals(
    vm: UUID, snapshot: Snapshot | None, source: Driver, destination: Driver
) -> Totals | None:
    """The figures of a completed migration, from whoever has them; None if nobody has."""
    deadline = time.monotonic() + _SETTLES_WITHIN_S
    while True:
        if snapshot is not None and snapshot.totals is not None:
            return snapshot.totals
        try:
            found = await destination.completed(vm)
            if found is not None:
                return _with_missed(found, snapshot)
            snapshot = await source.migration(vm)
        except VmtuneError as error:
            log.debug("no figures yet", vm=str(vm), reason=str(error))
        if time.monotonic() > deadline:
            return None
        await asyncio.sleep(_LOOK_AGAIN_S)


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
        if TUNABLES[name].route is Route.CONTROL:
            settled[name] = when_reaped(before, record.reaper)
    return settled


async def _read_there(destination: Driver, record: Migration, names: list[str]) -> list[Outcome]:
    try:
        readings = await destination.read(record.vm, names)
    except VmtuneError as error:
        return [
            Outcome(name, Status.UNKNOWN, record.wanted[name], None, error.message)
            for name in names
        ]
    return [judge(name, record.wanted[name], readings[name]) for name in names if name in readings]


async def _reset(vm: UUID, *drivers: Driver) -> None:
    for driver in drivers:
        try:
            await driver.reset_after_migration(vm)
        except VmtuneError as error:
            log.info("not reset", vm=str(vm), reason=str(error))


async def _let_go_on(record: Migration, driver: Driver) -> tuple[Problem, ...]:
    """Let a guest that a step has paused go on, where it now is. libvirt does so by itself; it
    takes a moment on either side."""
    if record.did(Deed.PAUSE) is None:
        return ()
    deadline = time.monotonic() + _SETTLES_WITHIN_S
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
        await asyncio.sleep(_LOOK_AGAIN_S)


async def _put_back(record: Migration, source: Driver) -> tuple[Problem, ...]:
    """Reset the source and restore its journal; what stays behind is told."""
    await _reset(record.vm, source)
    if not record.journal:
        return ()
    try:
        outcomes = await restore(source, record.vm, record.journal)
    except NotFound:
        return ()  # its QEMU is gone, and with it what was set
    except VmtuneError as error:
        return tuple(error.problems)
    return tuple(
        Problem(f"values.{o.tunable}", "not_put_back", o.reason, "set it by hand")
        for o in outcomes
        if o.status is not Status.REVERTED
    )
