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

from vmtune.errors import CommandRefused, NotFound, OutcomeUnknown, VmtuneError
from vmtune.hypervisor.protocol import Driver, MigrationHandle
from vmtune.model.host.facts import VmState
from vmtune.model.migration.record import (
    AbortState,
    Migration,
    MigrationState,
    QemuStatus,
    Snapshot,
)
from vmtune.model.migration.steps import StepAction

log = structlog.get_logger(__name__)

RETRY_S = 0.2
AGREES_WITHIN_S = 5.0
_LIBVIRT_ENDS_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What this process knows of a migration's end; empty after a restart.

    :param error: why a phase broke off.
    :param left: the source has reported that the VM has migrated away.
    """

    handle: MigrationHandle | None = None
    snapshot: Snapshot | None = None
    error: VmtuneError | None = None
    left: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """How it ended.

    :param why: for any end but success.
    """

    state: MigrationState
    why: str = ""


@dataclass(frozen=True, slots=True)
class HostView:
    """The VM's state on a host.

    :param state: None where the host does not have it.
    :param silent: why the host cannot be queried; empty if it answered.
    :param status: its last outgoing migration, where it has the VM.
    :param leaving: QEMU is done, and libvirt is not: it may still resume the guest here.
    :param left: it reported that the VM has migrated away.
    :param nowhere: no such host: it is unknown where the VM went.
    """

    state: VmState | None = None
    silent: str = ""
    status: QemuStatus | None = None
    why: str = ""
    leaving: bool = False
    left: bool = False
    nowhere: bool = False

    @property
    def present(self) -> bool:
        return self.state in (VmState.RUNNING, VmState.PAUSED)

    @property
    def split(self) -> bool:
        """It has the VM in post-copy: its memory is on two hosts (QEMU docs/devel/migration/
        postcopy.rst)."""
        return self.present and self.status is not None and self.status.in_postcopy

    @property
    def left_behind(self) -> bool:
        """QEMU has sent all of it, and libvirt no longer waits for the destination's word: it
        was ended meanwhile (qemuProcessRecoverMigrationOut in libvirt's
        src/qemu/qemu_process.c)."""
        done = self.status is QemuStatus.COMPLETED and not self.leaving
        return done and self.state is VmState.PAUSED

    @property
    def moving(self) -> bool:
        return self.leaving or (self.status is not None and self.status.running)


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
            by_step = f"aborted by a convergence step: {step.reason}" if step else ""
            return End(stopped, "aborted as asked" if asked else by_step or refusal.message)
        except OutcomeUnknown:
            log.info("the migration's end was missed: asking both", migration_id=str(record.id))
        else:
            return End(MigrationState.COMPLETED)
    error = evidence.error
    if record.state in (MigrationState.QUEUED, MigrationState.PREPARING):
        why = str(error) if error else "it was stopped before it began"
        return End(stopped, why)
    if isinstance(error, CommandRefused) and evidence.snapshot is None:
        return End(stopped, str(error))
    return await ask_both(record, stopped, evidence, source, destination)


async def ask_both(
    record: Migration,
    stopped: MigrationState,
    evidence: Evidence,
    source: Driver,
    destination: Driver | None,
) -> End:
    """Query both hosts, again while they are not done. A migration that began despite an earlier
    abort request is aborted here.

    Each round is several questions, and a VM may go from one host to the other between two of
    them: that a migration did not complete is believed only when a second round says the same.
    """
    deadline = time.monotonic() + AGREES_WITHIN_S
    before: End | None = None
    while True:
        here, there = await asyncio.gather(_ask(source, record.vm), _ask(destination, record.vm))
        here = _with_memory(here, evidence)
        if stopped is MigrationState.CANCELLED and here.status is not None and here.status.running:
            with suppress(VmtuneError):
                await source.abort_migration(record.vm)
        end = conclude(here, there, stopped)
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


def _with_memory(here: HostView, evidence: Evidence) -> HostView:
    """The source's answer, with its last answer while it had the VM."""
    last = evidence.snapshot
    completed = last is not None and last.status is QemuStatus.COMPLETED
    left = evidence.left or here.state is VmState.MIGRATED or completed
    if here.present and last is not None and last.error and not here.why:
        return replace(here, left=left, why=last.error)
    return replace(here, left=left)


def conclude(here: HostView, there: HostView, stopped: MigrationState) -> End:
    """The end, from both hosts' answers. Only a VM that runs on the destination has migrated;
    where nobody knows the destination, one that its source says to have migrated away. In
    post-copy the destination runs before it has all memory: that is no end, whatever became of
    the source."""
    if there.split:
        assert there.status is not None, "split by its status"
        return End(
            MigrationState.UNKNOWN,
            "the guest runs on the destination, and part of its memory is still on the source: "
            f"QEMU there says {there.status.value}; shut down neither host",
        )
    moved = there.present and not here.present and not here.silent
    # Otherwise QEMU lets the destination run only once the source has stopped for good.
    outlived = there.state is VmState.RUNNING and (bool(here.silent) or here.left_behind)
    if moved or outlived:
        return End(MigrationState.COMPLETED)
    if here.silent:
        return End(MigrationState.UNKNOWN, f"the source cannot be asked: {here.silent}")
    if here.present and there.present:
        return End(MigrationState.UNKNOWN, "both hosts have the VM: they are not yet done")
    if here.moving and here.status is not None:
        return End(MigrationState.UNKNOWN, f"QEMU says that it is {here.status.value}")
    if here.present:
        state = MigrationState.CANCELLED if here.status is QemuStatus.CANCELLED else stopped
        return End(state, here.why or "it stopped unobserved; the VM is on the source")
    if there.nowhere:
        why = "the VM left its host, and runs on none that vmtune knows"
        return End(MigrationState.COMPLETED) if here.left else End(MigrationState.UNKNOWN, why)
    if there.silent:
        return End(MigrationState.UNKNOWN, f"the destination cannot be asked: {there.silent}")
    return End(MigrationState.FAILED, here.why or "the VM runs on neither host")


async def _ask(driver: Driver | None, vm: UUID) -> HostView:
    if driver is None:
        return HostView(nowhere=True)
    try:
        vms = await driver.list_vms()
    except VmtuneError as error:
        return HostView(silent=error.message)
    state = next((v.state for v in vms if v.uuid == vm), None)
    if state not in (VmState.RUNNING, VmState.PAUSED):
        return HostView(state)
    try:
        snapshot = await driver.migration(vm)
        done = snapshot.status is QemuStatus.COMPLETED
        leaving = done and vm in await driver.outgoing()
    except NotFound:
        return HostView()
    except VmtuneError as error:
        return HostView(silent=error.message)
    return HostView(state, "", snapshot.status, snapshot.error, leaving)
