"""How far the disks are that a migration copies, recorded while it runs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import structlog

from vmtune.engine.copy_pace import CopyPace
from vmtune.engine.notes import Hosts, Notes
from vmtune.engine.steps.copy_steps import CopySteps
from vmtune.errors import VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import Connection
from vmtune.model.migration.copy_progress import CopyProgress, Look, paced, remembered
from vmtune.model.migration.disks import CopiedDisk, progressed, to_copy
from vmtune.model.migration.record import Migration, MigrationFields, Trigger

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 1.0
BEGINS_EVERY_S = 0.2
"""Until all copies have begun: a bandwidth of their own is to hold from their beginning."""


class CopyWatch:
    """Records how far the copies are, while the migration runs.

    Of one that others have started, nobody says beforehand which disks it copies: they are found by
    their copies, of which libvirt begins one after the other. Without libvirt none is.
    """

    def __init__(self, hosts: Hosts, notes: Notes) -> None:
        self._hosts = hosts
        self._notes = notes
        self._none: bool | None = None
        self._begun = False
        self._looked_at = float("-inf")
        self._looks: tuple[Look, ...] = ()
        self._memory_bytes: int | None = None
        self._pace = CopyPace(notes)
        self._steps = CopySteps(notes)
        self._of_vm: tuple[CopiedDisk, ...] | None = None

    async def look(self, now: float, started: float, *, memory: bool = False) -> None:
        """Ask for it, once a second when all have begun; by the clock that both times are of.

        :param memory: the memory is sent: of what is not copied by now no copy begins any more.
        """
        every_s = LOOK_EVERY_S if self._begun else BEGINS_EVERY_S
        if self._none or now - self._looked_at < every_s:
            return
        self._looked_at = now
        record = await self._notes.record()
        try:
            source = await self._hosts.source()
            may_be = await self._may_be_copied(record, source)
            self._none = not may_be
            if self._none:
                return
            seen = await source.mirrored(record.vm, [disk.target for disk in may_be])
        except VmtuneError as error:
            log.debug("copies not seen", vm=str(record.vm), reason=error.message)
            return
        known = {disk.target for disk in record.disks}
        found = tuple(d for d in may_be if d.target in known or d.target in seen)
        if len(found) > len(known):
            record = await self._notes.save(MigrationFields(disks=found))
        if not found:
            self._none = memory
            return
        self._begun |= all(disk.target in seen for disk in found)
        await self._pace.keep(record, source, seen)
        if not self._looks:
            with suppress(VmtuneError):
                self._memory_bytes = await source.resident_bytes(record.vm)
        at_ms = round((now - started) * 1000)
        self._looks = remembered(self._looks, Look(at_ms, seen))
        disks = paced(progressed(record.disks, seen, at_ms), self._looks)
        if disks != record.disks:
            await self._notes.note_disks(disks)
        await self._steps.look(record, source, disks, seen, at_ms)
        await self._notes.copying(CopyProgress(disks, at_ms), self._memory_bytes)

    async def _may_be_copied(self, record: Migration, source: Driver) -> tuple[CopiedDisk, ...]:
        """The disks of the record, and those of the VM that others may be found to copy."""
        if record.trigger is not Trigger.OBSERVED:
            return record.disks
        if self._of_vm is None:
            libvirt = await self._hosts.connection() is Connection.LIBVIRT
            disks = await source.disks(record.vm) if libvirt else ()
            self._of_vm = to_copy(tuple(disk for disk in disks if disk.path))
        known = {disk.target for disk in record.disks}
        return (*record.disks, *(disk for disk in self._of_vm if disk.target not in known))

    async def memory_begins(self, now: float, started: float) -> None:
        """Record that all copies have caught up, which no look may have seen: only then is the
        memory sent."""
        record = await self._notes.record()
        if all(disk.ready_ms is not None for disk in record.disks):
            return
        at_ms = round((now - started) * 1000)
        disks = tuple(
            disk
            if disk.ready_ms is not None
            else replace(disk, ready_ms=at_ms, left_ms=None, converges=None)
            for disk in record.disks
        )
        await self._notes.save(MigrationFields(disks=disks))
