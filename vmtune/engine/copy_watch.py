"""How far the disks are that a migration copies, recorded while it runs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import structlog

from vmtune.engine.notes import Hosts, Notes
from vmtune.errors import VmtuneError
from vmtune.model.migration.copy_progress import CopyProgress, Look, paced, remembered
from vmtune.model.migration.disks import progressed
from vmtune.model.migration.record import MigrationFields

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 1.0


class CopyWatch:
    """Records how far the copies are, while the migration runs."""

    def __init__(self, hosts: Hosts, notes: Notes) -> None:
        self._hosts = hosts
        self._notes = notes
        self._none: bool | None = None
        self._looked_at = float("-inf")
        self._looks: tuple[Look, ...] = ()
        self._memory_bytes: int | None = None

    async def look(self, now: float, started: float) -> None:
        """Ask for it, once a second; by the clock that both times are of."""
        if self._none or now - self._looked_at < LOOK_EVERY_S:
            return
        first = self._looked_at == float("-inf")
        self._looked_at = now
        record = await self._notes.record()
        self._none = not record.disks
        if self._none:
            return
        try:
            source = await self._hosts.source()
            seen = await source.mirrored(record.vm, [disk.target for disk in record.disks])
        except VmtuneError as error:
            log.debug("copies not seen", vm=str(record.vm), reason=error.message)
            return
        if first:
            with suppress(VmtuneError):
                self._memory_bytes = await source.resident_bytes(record.vm)
        at_ms = round((now - started) * 1000)
        self._looks = remembered(self._looks, Look(at_ms, seen))
        disks = paced(progressed(record.disks, seen, at_ms), self._looks)
        if disks != record.disks:
            await self._notes.note_disks(disks)
        await self._notes.copying(CopyProgress(disks, at_ms), self._memory_bytes)

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
