"""Completes a migration's record after its observation: its end, its figures, the read-back on
arrival, and what is restored."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import structlog

from vmtune.engine import postcopy
from vmtune.engine.arrived_settings import restore_arrived
from vmtune.engine.copied_disks import end_copies
from vmtune.engine.end_state import GUEST_LOST, End, Evidence, find_end, harms_guest
from vmtune.engine.notes import Hosts
from vmtune.engine.read_back import close_outcomes, read_on_arrival
from vmtune.engine.setting import set_again
from vmtune.engine.undo import Undo
from vmtune.errors import NotFound, Problem, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import Connection, VmState
from vmtune.model.migration.controller_record import ReaperEnd
from vmtune.model.migration.disks import arrived
from vmtune.model.migration.record import (
    Migration,
    MigrationFields,
    MigrationState,
    Snapshot,
    Totals,
    Trigger,
)
from vmtune.model.migration.steps import StepAction
from vmtune.model.plan.changes import Change
from vmtune.model.plan.outcome import Outcome, Status
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.tunable import Route

log = structlog.get_logger(__name__)

RETRY_S = 0.2
ANSWERS_WITHIN_S = 5.0
STARTS_AGAIN_WITHIN_S = 30.0
"""A libvirt daemon that was ended, or a host's connection."""

_CAME_BACK = Problem(
    "migration",
    "came_back",
    "the VM had left its source, and another migration has brought it back since: the end of this "
    "one was not seen, and its figures are not known",
    "keep the service running while VMs migrate",
)

CarryOver = Callable[[UUID, Driver], Awaitable[Sequence[Outcome]]]
"""Sets the VM's applied values on the destination, too: QEMU does not migrate them."""


async def finalize(
    record: Migration,
    hosts: Hosts,
    evidence: Evidence,
    tunables: TunableRegistry,
    reapply: CarryOver,
) -> MigrationFields:
    """Find out how a migration ended, restore what was set for it, and return what completes its
    record. May be repeated; if the hosts cannot be queried, the state is unknown and nothing else
    is done.

    :raise VmtuneError: there is no driver of one of the hosts here.
    """
    fields = MigrationFields()
    source, destination = await hosts.source(), await hosts.destination()
    end = await find_end(record, evidence, source, destination)
    fields |= MigrationFields(state=end.state, failure=end.why)
    if end.state.ended:
        fields["ended_at"] = datetime.now(UTC)
    if record.reaper is not None and record.reaper.end is ReaperEnd.RUNNING:
        record = replace(record, reaper=replace(record.reaper, end=ReaperEnd.INTERRUPTED))
        fields["reaper"] = record.reaper
    if end.state is MigrationState.POSTCOPY_PAUSED and not _is_reported(record):
        fields["problems"] = (*record.problems, postcopy.interrupted(record, ""))
    if end.state in (MigrationState.UNKNOWN, MigrationState.POSTCOPY_PAUSED):
        return fields
    if end.why == GUEST_LOST or end.came_back:
        kept = await end_copies(record, end.state, destination, may_have_run=True)
        return fields | _closed_unasked(replace(record, problems=(*record.problems, *kept)), end)
    # Without libvirt, the values of an observed migration belong to its starter.
    libvirt = await hosts.connection() is Connection.LIBVIRT
    resets = record.trigger is Trigger.VMTUNE or libvirt
    if end.state is MigrationState.COMPLETED:
        # It may have gone on unobserved.
        record = replace(record, problems=postcopy.resumed(record.problems, datetime.now(UTC)))
        fields["totals"] = totals = await _totals(record.vm, evidence.snapshot, source, destination)
        if destination is None:
            outcomes = close_outcomes(record, "it is not known where the VM is now")
            return fields | MigrationFields(outcomes=tuple(outcomes.values()))
        paused = await resume_if_paused(record, destination)
        fields |= await _postcopy_figures(record, destination)
        outcomes = await _arrived(record, destination, totals, tunables)
        lacks = await _carried_over(record.vm, destination, reapply)
        undo = Undo(record, source, destination, tunables)
        stays = await undo.completed(libvirt=libvirt) if resets else ()
        if libvirt:
            await restore_arrived(record, destination)
        left = await end_copies(record, end.state, destination, source=None if libvirt else source)
        if record.disks:
            fields["disks"] = arrived(record.disks)
        old = await find_old_copy(record, source)
        problems = (*paused, *lacks, *stays, *left, *old)
    else:
        paused = await resume_if_paused(record, source)
        undo = Undo(record, source, destination, tunables)
        stays = await undo.stopped(resets=resets, libvirt=libvirt)
        # On neither host: it may have arrived unnoticed, and ended there.
        may_have_run = end.gone or harms_guest(end.why)
        left = await end_copies(
            record,
            end.state,
            destination,
            may_have_run=may_have_run,
            source=None if libvirt else source,
        )
        problems = (*paused, *stays, *left)
        outcomes = close_outcomes(record, "the migration did not complete")
    problems = (*record.problems, *problems)
    return fields | MigrationFields(outcomes=tuple(outcomes.values()), problems=problems)


def _closed_unasked(record: Migration, end: End) -> MigrationFields:
    """What completes the record where neither host has what the migration was about. A source
    whose guest is lost holds no whole guest, and nothing may resume it; one whose guest has come
    back runs another QEMU."""
    if end.came_back:
        outcomes = close_outcomes(record, "the VM has come back to its source since")
        problems = (*record.problems, _CAME_BACK)
        return MigrationFields(outcomes=tuple(outcomes.values()), problems=problems)
    outcomes = close_outcomes(record, "the migration did not complete")
    return MigrationFields(outcomes=tuple(outcomes.values()), problems=record.problems)


def _is_reported(record: Migration) -> bool:
    return any(problem.code == postcopy.PAUSED for problem in record.problems)


async def _postcopy_figures(record: Migration, destination: Driver) -> MigrationFields:
    """What the destination's QEMU has counted; before what counts is switched off again."""
    if not record.wanted.get("postcopy"):
        return MigrationFields()
    try:
        figures = await destination.postcopy_figures(record.vm)
    except VmtuneError as error:
        log.info("no figures of post-copy", vm=str(record.vm), reason=str(error))
        figures = None
    return MigrationFields(postcopy=figures) if figures is not None else MigrationFields()


async def _arrived(
    record: Migration, destination: Driver, totals: Totals | None, tunables: TunableRegistry
) -> dict[str, Outcome]:
    """The outcomes on the destination, where live values are set again."""
    outcomes = await read_on_arrival(record, destination, tunables)
    live_rows = {row.name for row in tunables.on(Route.LIVE)}
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
    return outcomes


async def _carried_over(vm: UUID, destination: Driver, reapply: CarryOver) -> tuple[Problem, ...]:
    """Values of the VM's current application that are missing on the destination."""
    return tuple(
        Problem(f"values.{o.tunable}", "not_carried_over", o.reason, "apply it again")
        for o in await reapply(vm, destination)
        if o.status is not Status.EFFECTIVE
    )


async def _totals(
    vm: UUID, snapshot: Snapshot | None, source: Driver, destination: Driver | None
) -> Totals | None:
    """The figures of a completed migration, from the host that has them; None if none has."""
    deadline = time.monotonic() + ANSWERS_WITHIN_S
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
                return None  # its QEMU is gone, and no other source has them
        except VmtuneError as error:
            log.debug("no figures yet", vm=str(vm), reason=str(error))
        if time.monotonic() > deadline:
            return None
        await asyncio.sleep(RETRY_S)


def _with_missed(totals: Totals, snapshot: Snapshot | None) -> Totals:
    """libvirt does not count silent copies; the last sample does."""
    sample = snapshot.sample if snapshot else None
    missed = sample.missed_zero_copy if sample else 0
    return replace(totals, missed_zero_copy=max(totals.missed_zero_copy, missed))


async def find_old_copy(record: Migration, source: Driver) -> tuple[Problem, ...]:
    """What libvirt keeps on the source if it was ended before the destination's confirmation: the
    VM's old copy, paused. A source that cannot be asked is given the time that a daemon takes to
    start again; what is just leaving may be gone when it is asked again."""
    deadline = time.monotonic() + STARTS_AGAIN_WITHIN_S
    paused = 0
    silent = ""
    while time.monotonic() < deadline:
        try:
            if await source.vm_state(record.vm) is not VmState.PAUSED:
                return ()
            paused += record.vm not in await source.outgoing()
            silent = ""
            if paused > 1:
                return (_old_copy(record),)
        except NotFound:
            return ()
        except VmtuneError as error:
            silent = str(error)
            log.debug("the source does not answer", vm=str(record.vm), reason=silent)
        await asyncio.sleep(RETRY_S)
    return (_source_silent(record, silent),) if silent else ()


def _old_copy(record: Migration) -> Problem:
    return Problem(
        "vm",
        "left_behind",
        f"{record.source} still holds the VM's old copy, paused: "
        "its libvirt ended before the VM's arrival was confirmed",
        f"never resume it, its disks are in use on {record.destination}; "
        f"`virsh destroy {record.vm}` on {record.source} ends it",
    )


def _source_silent(record: Migration, why: str) -> Problem:
    return Problem(
        "vm",
        "source_silent",
        f"{record.source} could not be asked whether it holds the VM's old copy: {why}",
        f"when it answers, `virsh domstate {record.vm}` on {record.source}; if it says `paused`, "
        f"never resume that copy, its disks are in use on {record.destination}: "
        f"`virsh destroy {record.vm}` on {record.source} ends it",
    )


async def resume_if_paused(record: Migration, driver: Driver) -> tuple[Problem, ...]:
    """Resume a guest that a step has paused, where it now is. libvirt does so by itself; it
    takes a moment on either side."""
    if record.did(StepAction.PAUSE) is None:
        return ()
    deadline = time.monotonic() + ANSWERS_WITHIN_S
    while True:
        try:
            state = await driver.vm_state(record.vm)
            if state is VmState.RUNNING:
                return ()
            why = f"it is {state.value}"
            if state is VmState.PAUSED:
                await driver.resume(record.vm)
        except VmtuneError as error:
            why = error.message
        if time.monotonic() > deadline:
            remedy = "resume it by hand"
            return (Problem("vm", "still_paused", f"a step has paused it, and {why}", remedy),)
        await asyncio.sleep(RETRY_S)
