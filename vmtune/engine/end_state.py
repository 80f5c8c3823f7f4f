"""How a migration ended: determined by querying both hosts, never assumed.

:func:`conclude` is the decision, and pure; what feeds it asks the hosts.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import UUID

import structlog

from vmtune.engine.guest_state import Guest, HostView, guest_state, seen_from_both
from vmtune.errors import CommandRefused, NotFound, OutcomeUnknown, VmtuneError
from vmtune.hypervisor.protocol import Driver, MigrationHandle
from vmtune.model.host.facts import Postcopy, VmState
from vmtune.model.migration.record import (
    MIGRATION_CANCELLED,
    AbortState,
    Migration,
    MigrationState,
    QemuStatus,
    Snapshot,
    Trigger,
)
from vmtune.model.migration.steps import StepAction

log = structlog.get_logger(__name__)

RETRY_S = 0.2
AGREES_WITHIN_S = 5.0
_REPORTED = "; it was reported as failed: "
_LIBVIRT_ENDS_WITHIN_S = 60.0
_BEGUN = (MigrationState.ACTIVE, MigrationState.POSTCOPY_PAUSED)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What this process knows of a migration's end; empty after a restart.

    :param error: why a phase broke off.
    :param left: the source has reported that the VM has migrated away.
    :param interrupted: a libvirt of either side went away meanwhile.
    :param switched: QEMU was seen in post-copy.
    :param anothers: what migrates the VM is not this migration, which never began.
    :param may_abort: what migrates the VM is this migration: a request to abort it is carried out.
    :param recovers: a post-copy that is paused may still be recovered by itself: a host that is
        silent is waited for.
    :param refused: the answer to this process's own call to start it.
    """

    handle: MigrationHandle | None = None
    snapshot: Snapshot | None = None
    error: VmtuneError | None = None
    left: bool = False
    interrupted: bool = False
    anothers: bool = False
    switched: bool = False
    may_abort: bool = True
    recovers: bool = False
    refused: CommandRefused | None = None


@dataclass(frozen=True, slots=True)
class End:
    """How it ended.

    :param why: for any end but success.
    :param gone: no host has the guest any more.
    :param came_back: the guest has left, and is on the source again.
    """

    state: MigrationState
    why: str = ""
    gone: bool = False
    came_back: bool = False


async def find_end(
    record: Migration, evidence: Evidence, source: Driver, destination: Driver | None
) -> End:
    """How a migration ended that is no longer observed: by its starter's result, if known for
    certain, else by both hosts."""
    asked = record.abort is AbortState.REQUESTED
    step = record.did(StepAction.ABORT)
    stopped = MigrationState.CANCELLED if asked or step else MigrationState.FAILED
    if evidence.handle is not None and evidence.handle.done:
        try:
            await evidence.handle.wait()
        except CommandRefused as refusal:
            by = "steering" if step and step.number is None else "a convergence step"
            by_step = f"aborted by {by}: {step.reason}" if step else ""
            said = "aborted on request" if asked else by_step or _with_remedy(refusal)
            if refusal.problems[0].code == MIGRATION_CANCELLED:
                stopped = MigrationState.CANCELLED
            if not evidence.handle.begun:
                return End(stopped, said)
            return await _look_at_refused(record, stopped, said, evidence, source, destination)
        except OutcomeUnknown:
            log.info("the migration's end was missed: asking both", migration_id=str(record.id))
        else:
            return End(MigrationState.COMPLETED)
    error = evidence.error
    if record.state in (MigrationState.QUEUED, MigrationState.PREPARING):
        why = str(error) if error else "it was stopped before it began"
        return End(stopped, why)
    if evidence.anothers:
        return End(stopped, NEVER_BEGAN)
    if evidence.refused is not None:
        return End(stopped, str(evidence.refused))
    end = await ask_both(record, stopped, evidence, source, destination)
    if end.state is not stopped and end.state is MigrationState.CANCELLED and evidence.interrupted:
        return End(stopped, ENDED_BY_RESTART)
    return end


def _with_remedy(refusal: CommandRefused) -> str:
    remedy = refusal.problems[0].remedy
    return f"{refusal.message}: {remedy}" if remedy else refusal.message


async def _look_at_refused(
    record: Migration,
    stopped: MigrationState,
    said: str,
    evidence: Evidence,
    source: Driver,
    destination: Driver | None,
) -> End:
    """The end of a migration that its starter calls failed. libvirt does so where it loses its
    connection to the other libvirt, and in post-copy QEMU goes on without."""
    end = await ask_both(record, stopped, evidence, source, destination)
    if end.state is MigrationState.COMPLETED or harms_guest(end.why):
        return end
    if end.state in (MigrationState.FAILED, MigrationState.CANCELLED) and not end.gone:
        return End(stopped, said)
    return replace(end, why=f"{end.why}{_REPORTED}{said}")


def with_report(before: str, why: str) -> str:
    """What a look at a migration that has ended says, with what its starter had said of it: that
    is heard only once.

    :param before: the record's failure so far.
    """
    _, _, said = before.partition(_REPORTED)
    return f"{why}{_REPORTED}{said}" if said else why


async def ask_both(
    record: Migration,
    stopped: MigrationState,
    evidence: Evidence,
    source: Driver,
    destination: Driver | None,
) -> End:
    """Query both hosts, again while they are not done. A migration that began despite an earlier
    abort request is aborted here, where it is certain that it is this one which runs.

    Each round is several questions, and a VM may go from one host to the other between two of
    them: that a migration did not complete is believed only when a second round says the same.
    """
    deadline = time.monotonic() + AGREES_WITHIN_S
    before: End | None = None
    while True:
        here, there = await asyncio.gather(
            _ask(source, record.vm), _ask_destination(destination, record)
        )
        here = _with_memory(here, evidence)
        asked = stopped is MigrationState.CANCELLED and evidence.may_abort
        if asked and here.status is not None and here.status.running:
            with suppress(VmtuneError):
                await source.abort_migration(record.vm)
        end = conclude(here, there, stopped)
        if record.state is MigrationState.POSTCOPY_PAUSED and end.state is MigrationState.UNKNOWN:
            end = _not_over(end, here, there, evidence)
        if here.arrived and _had_begun(record) and end.state is stopped:
            end = End(MigrationState.COMPLETED, came_back=True)
        if there.nowhere and not here.moving and end == before:
            return end  # another query would show the same
        extra_s = _LIBVIRT_ENDS_WITHIN_S if here.leaving else 0
        certain = end.state is MigrationState.COMPLETED or end == before
        if certain and end.state is not MigrationState.UNKNOWN:
            return end
        if before is not None and time.monotonic() > deadline + extra_s:
            return replace(end, state=MigrationState.UNKNOWN)
        before = end
        await asyncio.sleep(RETRY_S)


def _not_over(end: End, here: HostView, there: HostView, evidence: Evidence) -> End:
    """What is known of a post-copy that was paused: it has not ended because a host is silent, nor
    because it goes on by now. Whoever watches it next sees that."""
    goes_on = guest_state(here, there) is Guest.SPLIT
    waits = evidence.recovers and bool(here.silent or there.silent)
    return replace(end, state=MigrationState.POSTCOPY_PAUSED) if goes_on or waits else end


def _had_begun(record: Migration) -> bool:
    """Whether the source's QEMU was seen to migrate. One that has sent the guest nowhere is then
    another: the guest has left, and come back while nobody looked."""
    began = record.active_at is not None or record.state in _BEGUN
    return began or record.trigger is Trigger.OBSERVED


async def is_lost(record: Migration, source: Driver, destination: Driver | None) -> bool:
    """Whether the guest was on a destination whose QEMU is gone: nothing is left to recover."""
    here, there = await asyncio.gather(
        _ask(source, record.vm), _ask_destination(destination, record)
    )
    return guest_state(here, there) is Guest.LOST


def _with_memory(here: HostView, evidence: Evidence) -> HostView:
    """The source's answer, with its last answer while it had the VM."""
    last = evidence.snapshot
    completed = last is not None and last.status is QemuStatus.COMPLETED
    here = replace(here, switched=evidence.switched)
    left = evidence.left or here.state is VmState.MIGRATED or completed
    if here.present and last is not None and last.error and not here.why:
        return replace(here, left=left, why=last.error)
    return replace(here, left=left)


def conclude(here: HostView, there: HostView, stopped: MigrationState) -> End:
    """The end, from both hosts' answers, by :func:`~vmtune.engine.guest_state.guest_state`.

    :param stopped: what a migration has come to whose VM stays on its source.
    """
    match guest_state(here, there):
        case Guest.THERE:
            return End(MigrationState.COMPLETED)
        case Guest.HERE:
            state = MigrationState.CANCELLED if here.status is QemuStatus.CANCELLED else stopped
            return End(state, here.why or "it stopped unobserved; the VM is on the source")
        case Guest.GONE:
            why = f"{GONE} ({here.why})" if here.why else GONE
            return End(MigrationState.FAILED, why, gone=True)
        case Guest.LOST | Guest.ROLLED_BACK as guest:
            why = GUEST_LOST if guest is Guest.LOST else ROLLED_BACK
            return End(MigrationState.FAILED, why)
        case Guest.AWAY if here.left:
            return End(MigrationState.COMPLETED)
        case Guest.AWAY:
            why = "the VM left its host, and runs on none that vmtune knows"
            return End(MigrationState.UNKNOWN, why)
        case Guest.SPLIT:
            return End(MigrationState.UNKNOWN, f"{SPLIT}; {NEITHER}")
        case Guest.BROKEN:
            return End(MigrationState.POSTCOPY_PAUSED, f"{_why_broken(here, there)}; {NEITHER}")
        case Guest.OPEN:
            return End(MigrationState.UNKNOWN, _why_open(here, there))


ENDED_BY_RESTART = (
    "a libvirt went away meanwhile, and QEMU says cancelled: libvirt cancels a migration when it "
    "loses the other side's libvirt, and one that it finds when it is started again"
)
NEVER_BEGAN = (
    "vmtune ended before the migration began, and the one that runs now is another client's"
)
NEITHER = "shut down neither host"
SPLIT = "the guest runs on the destination, and part of its memory is still on the source"
GONE = "the VM runs on neither host"
GUEST_LOST = (
    "guest lost: it ran on the destination in post-copy, and its QEMU there is gone; what the "
    "source has is not a whole guest and must not be resumed"
)
ROLLED_BACK = (
    "guest rolled back: its QEMU on the destination ended in post-copy, and the source's runs the "
    "guest as it was at the switch. What it did since is lost, and its disks may be newer than its "
    "memory: reset it, and check its file systems"
)
ON_BOTH = (
    "the guest runs on the destination, and the source's QEMU runs it, too, as it was before the "
    "switch to post-copy: end the one on the source at once, their disks are the same"
)
ON_BOTH_IN_PART = (
    "the guest runs on both hosts, with the same disks: on the destination, which lacks memory "
    "that can no longer be sent, and on the source, as it was before the switch to post-copy. End "
    "the one on the destination at once, then reset the one on the source and check its file "
    "systems"
)
RUNS_TWICE = (
    "the guest runs on both hosts, with the same disks: end one of the two at once, which is the "
    "destination's where the migration was aborted, and check its file systems"
)


def harms_guest(why: str) -> bool:
    """Whether a migration that failed for *why* has cost the guest what it did or was."""
    return why in (GUEST_LOST, ROLLED_BACK)


def _why_broken(here: HostView, there: HostView) -> str:
    if there.split and not (here.present or here.silent):
        return (
            "the guest runs on the destination, and the source's QEMU, which held part of its "
            "memory, is gone: what is missing cannot be recovered, and the guest stops where it "
            "needs it"
        )
    silent = here.silent or there.silent
    return f"{SPLIT}: post-copy is paused" + (f"; a host cannot be asked: {silent}" * bool(silent))


def _why_open(here: HostView, there: HostView) -> str:
    if here.silent:
        return f"the source cannot be asked: {here.silent}"
    if seen_from_both(here, there).rolled_back and there.present:
        return ON_BOTH_IN_PART if there.split else ON_BOTH
    if here.state is there.state is VmState.RUNNING and not here.moving:
        return RUNS_TWICE
    if here.present and there.present:
        return "both hosts have the VM: they are not yet done"
    if here.moving and here.status is not None:
        return f"QEMU says that it is {here.status.value}"
    if there.silent:
        return f"the destination cannot be asked: {there.silent}"
    return "the source has sent all of it, and the destination does not have it"


def removed(host: str) -> str:
    """Why a host cannot be asked that there is no more."""
    return f"{host} was removed"


async def _ask_destination(driver: Driver | None, record: Migration) -> HostView:
    """The destination's answer. The one of an observed migration is only where it was looked for:
    once that is removed, it is not known where the VM went."""
    if driver is not None:
        return await _ask(driver, record.vm)
    if record.destination and record.trigger is Trigger.VMTUNE:
        return HostView(silent=removed(record.destination))
    return HostView(nowhere=True)


async def _ask(driver: Driver, vm: UUID) -> HostView:
    try:
        vms = await driver.list_vms()
    except VmtuneError as error:
        return HostView(silent=error.message)
    found = next((v for v in vms if v.uuid == vm), None)
    if found is not None and found.state is VmState.OTHER:
        return await _ask_other(driver, vm)
    if found is None or found.state not in (VmState.RUNNING, VmState.PAUSED):
        return HostView(found.state if found is not None else None)
    try:
        snapshot = await driver.migration(vm)
        done = snapshot.status is QemuStatus.COMPLETED
        waits = done and found.postcopy is not Postcopy.FAILED
        leaving = waits and vm in await driver.outgoing()
    except NotFound:
        return HostView()
    except VmtuneError as error:
        if found.postcopy is Postcopy.NONE:
            return HostView(silent=error.message)
        return HostView(found.state, why=error.message, reason=found.postcopy)
    # A source's own migration comes with figures of its RAM.
    arrived = done and snapshot.sample is None and found.state is VmState.RUNNING
    return HostView(
        found.state, "", snapshot.status, snapshot.error, leaving,
        reason=found.postcopy, arrived=arrived,
    )  # fmt: skip


async def _ask_other(driver: Driver, vm: UUID) -> HostView:
    """A VM whose state is none that a migration leaves it in, or whose QEMU takes no command: one
    that is held up at the switchover still has the guest, and is not gone."""
    try:
        await driver.migration(vm)
    except NotFound:
        return HostView()
    except VmtuneError as error:
        return HostView(silent=error.message)
    return HostView(VmState.OTHER)
