"""A post-copy that is paused while a session watches: recorded, recovered by itself, or lost."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime

import structlog

from vmtune.engine import postcopy
from vmtune.engine.context import Clock
from vmtune.engine.end_state import is_lost
from vmtune.engine.notes import Hosts, Notes
from vmtune.engine.recovery import Recovery, RecoverySettings
from vmtune.errors import VmtuneError
from vmtune.model.host.facts import Connection
from vmtune.model.migration.postcopy import why_not_offered
from vmtune.model.migration.record import (
    Migration,
    MigrationFields,
    MigrationState,
    QemuStatus,
    Snapshot,
)

log = structlog.get_logger(__name__)

_DESTINATION_ANSWERS_WITHIN_S = 2.0
STALLED_AFTER_S = 30.0
"""How long nothing may be sent in post-copy before the record says so. As long does libvirt wait
for the other libvirt; a link that is back within it needs nobody."""


class GuestLost(Exception):
    """Post-copy is paused for ever: there is nothing left to watch."""


class PostcopyWatch:
    """What one session does where post-copy is paused."""

    def __init__(self, hosts: Hosts, notes: Notes, clock: Clock) -> None:
        self._hosts = hosts
        self._notes = notes
        self._clock = clock
        self._paused = True  # an earlier process may have recorded so
        self._recovery: asyncio.Task[None] | None = None
        self._asked_offer = False
        self._lost = False
        self._sent: tuple[int, float] | None = None
        self._stalled = False

    async def on_snapshot(self, snapshot: Snapshot) -> None:
        """Record that post-copy is paused, and that it goes on again.

        :raise GuestLost: nobody can recover it.
        """
        await self._check_stalled(snapshot)
        paused = snapshot.status is QemuStatus.POSTCOPY_PAUSED
        if not paused and not self._paused:
            return
        record = await self._notes.record()
        if paused and record.state in (MigrationState.STARTING, MigrationState.ACTIVE):
            problem = postcopy.interrupted(record, snapshot.error)
            fields = MigrationFields(state=MigrationState.POSTCOPY_PAUSED)
            await self._notes.save(fields | MigrationFields(problems=(*record.problems, problem)))
            log.warning("post-copy is paused", migration_id=str(record.id), vm=str(record.vm))
        if paused:
            await self._check_offered()
            self._recover(record)
            await self._check_lost(record)
        goes_on = snapshot.status in (QemuStatus.POSTCOPY_ACTIVE, QemuStatus.COMPLETED)
        if goes_on and record.state is MigrationState.POSTCOPY_PAUSED:
            problems = postcopy.resumed(record.problems, datetime.now(UTC))
            await self._notes.save(MigrationFields(state=MigrationState.ACTIVE, problems=problems))
        noted = record.state is MigrationState.POSTCOPY_PAUSED and not goes_on
        self._paused = paused or noted
        if goes_on:
            self._asked_offer = False
            await self.end()

    async def _check_stalled(self, snapshot: Snapshot) -> None:
        """Record that nothing is sent, and no longer once something is."""
        if snapshot.status is not QemuStatus.POSTCOPY_ACTIVE or snapshot.sample is None:
            self._sent = None
            return
        sent, now = snapshot.sample.transferred_bytes, self._clock.now()
        if self._sent is None or self._sent[0] != sent:
            self._sent = (sent, now)
            if self._stalled:
                self._stalled = False
                await self._note_stall(0)
        elif now - self._sent[1] >= STALLED_AFTER_S and not self._stalled:
            self._stalled = True
            await self._note_stall(now - self._sent[1])

    async def _note_stall(self, seconds: float) -> None:
        """:param seconds: 0 where it goes on."""
        record = await self._notes.record()
        others = [problem for problem in record.problems if problem.code != postcopy.STALLED]
        problems = (*others, postcopy.stalled(record, seconds)) if seconds else tuple(others)
        if problems != record.problems:
            await self._notes.save(MigrationFields(problems=problems))

    async def end(self) -> None:
        """Try no more to recover it."""
        recovery, self._recovery = self._recovery, None
        if recovery is None:
            return
        recovery.cancel()
        try:
            await recovery
        except asyncio.CancelledError:
            if not recovery.cancelled():
                raise
        except VmtuneError as error:
            log.warning("recovery broke off", reason=str(error))

    async def _check_offered(self) -> None:
        """Record, once for each pause, that libvirt cannot recover it, where that is so."""
        if self._asked_offer:
            return
        try:
            if await self._hosts.connection() is not Connection.LIBVIRT:
                return
            async with asyncio.timeout(_DESTINATION_ANSWERS_WITHIN_S):
                destination = await self._hosts.destination()
                if destination is None:
                    return
                there = await destination.host_facts()
                here = await (await self._hosts.source()).host_facts()
        except (VmtuneError, TimeoutError):
            return  # asked again when it is looked at next
        self._asked_offer = True
        why = why_not_offered(there.libvirt, here.libvirt)
        if why:
            problems = postcopy.not_offered((await self._notes.record()).problems, why)
            await self._notes.save(MigrationFields(problems=problems))

    async def _check_lost(self, record: Migration) -> None:
        """Seen twice, since a host may be asked in the midst of something.

        :raise GuestLost: nobody can recover it.
        """
        source, destination = await self._hosts.source(), await self._hosts.destination()
        lost = False
        with suppress(TimeoutError):  # its main loop waits for a page: it is there
            async with asyncio.timeout(_DESTINATION_ANSWERS_WITHIN_S):
                lost = await is_lost(record, source, destination)
        if lost and self._lost:
            raise GuestLost
        self._lost = lost

    def _recover(self, record: Migration) -> None:
        """Begin to recover it by itself, once for each pause."""
        settings = RecoverySettings.of(record)
        if settings.auto and self._recovery is None:
            recovery = Recovery(self._hosts, self._notes, settings, self._clock)
            name = f"recovery {record.id}"
            self._recovery = asyncio.create_task(recovery.run(), name=name)
