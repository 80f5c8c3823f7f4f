"""What a migration's session needs around it: a record to write to, and the two hosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from vmtune.engine.controllers import Controllers
from vmtune.forecast.outlook import Outlook
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.host.facts import Connection
from vmtune.model.migration.controller_record import StepRecord
from vmtune.model.migration.copy_progress import CopyProgress
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.record import Migration, MigrationFields, Sample, Snapshot
from vmtune.model.plan.changes import Change


class Notes(Protocol):
    """Where a session records what happens. What the service writes is durable when a call
    returns; a benchmark keeps it in memory."""

    async def record(self) -> Migration:
        """The present record: a user may have requested an abort meanwhile."""

    async def save(self, fields: MigrationFields) -> Migration:
        """Change the record."""

    async def step(self, step: StepRecord, undo: Sequence[Change]) -> None:
        """Record a step; see :data:`vmtune.engine.context.NoteStep`."""

    async def sampled(
        self, snapshot: Snapshot, controllers: Controllers, outlook: Outlook | None
    ) -> None:
        """Called with each snapshot, before the session acts on it.

        :param outlook: what is expected of the migration; None where nobody asked.
        """

    async def note_disks(self, disks: Sequence[CopiedDisk]) -> None:
        """Record how far the copies of disks are; the newest may be lost when the power fails."""

    async def copying(self, progress: CopyProgress, memory_bytes: int | None) -> None:
        """Called once a second with how far the copies of disks are, also while the memory is sent.

        :param memory_bytes: about what is sent after them; None where it is not known.
        """

    async def samples(self) -> Sequence[Sample]:
        """Those that an earlier process has stored, in order; empty where there was none."""

    async def dirtied_before(self) -> Sequence[DirtyPoint]:
        """What was measured of the guest's dirty curve before the migration; empty if nothing was,
        or it cannot be read."""

    async def flush(self, controllers: Controllers) -> None:
        """Store samples and rounds that are not stored yet."""


class Hosts(Protocol):
    """The drivers of a migration's two sides, resolved when they are needed: a host may be
    registered anew while a VM migrates."""

    async def connection(self) -> Connection:
        """The connection kind of the source, and so of the destination."""

    async def source(self) -> Driver:
        """The source.

        :raise VmtuneError: there is no driver of it here.
        """

    async def destination(self) -> Driver | None:
        """The destination; None if it is unknown, or is no host of vmtune's any more.

        :raise VmtuneError: there is no driver of it here.
        """
