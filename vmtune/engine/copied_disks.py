"""The disks that a migration copies: how far they are, and what becomes of images at its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from uuid import UUID

import structlog

from vmtune.engine.notes import Hosts, Notes
from vmtune.errors import Problem, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.migration.disks import CopiedDisk, progressed
from vmtune.model.migration.record import Migration, MigrationFields, MigrationState

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 1.0
RELEASES_WITHIN_S = 15.0
RETRY_S = 0.2


class CopyWatch:
    """Records how far the copies are, while the migration runs."""

    def __init__(self, hosts: Hosts, notes: Notes) -> None:
        self._hosts = hosts
        self._notes = notes
        self._none: bool | None = None
        self._looked_at = float("-inf")

    async def look(self, now: float, started: float) -> None:
        """Ask for it, once a second; by the clock that both times are of."""
        if self._none or now - self._looked_at < LOOK_EVERY_S:
            return
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
        disks = progressed(record.disks, seen, round((now - started) * 1000))
        if disks != record.disks:
            await self._notes.save(MigrationFields(disks=disks))


async def end_copies(
    record: Migration,
    state: MigrationState,
    destination: Driver | None,
    *,
    may_have_run: bool = False,
    source: Driver | None = None,
) -> tuple[Problem, ...]:
    """Once it is certain how the migration ended: have the destination forget what was prepared,
    and remove the images that were made for a VM that did not arrive. Those of the source stay.

    :param may_have_run: the guest may have run on the destination, and its images there may be
        newer than the source's: they stay, and are told.
    :param source: where nothing but vmtune ends copies: without libvirt.
    :return: what was not removed.
    """
    if not record.disks:
        return ()
    if source is not None:
        await _released(record.vm, source, ())
    arrived = state is MigrationState.COMPLETED
    made = [] if arrived else [d for d in record.disks if d.created or d.intended]
    remove = [] if may_have_run else made
    gone = await _released(record.vm, destination, remove) if destination is not None else ()
    if may_have_run:
        return tuple(
            Problem(
                "disks",
                "image_kept",
                f"{disk.path} on {record.destination} was made for this migration, and may be "
                f"newer than the one on {record.source}: the guest may have run there",
                "compare both before you start the VM anywhere or remove one of them",
            )
            for disk in made
        )
    return tuple(_left(disk, record.destination) for disk in made if disk.path not in gone)


def _left(disk: CopiedDisk, destination: str) -> Problem:
    if disk.created:
        why = f"{disk.path} was made on {destination} for this migration, and may still be there"
    else:
        why = (
            f"{disk.path} on {destination} may have been made for this migration, and is not empty "
            "or could not be looked at"
        )
    remedy = f"if nothing there needs it: rm {disk.path} on {destination}"
    return Problem("disks", "image_left", why, remedy)


async def _released(
    vm: UUID, destination: Driver, remove: Collection[CopiedDisk]
) -> Collection[str]:
    """What of *remove* is gone. A libvirt that is just being started again is given a while, and so
    is a QEMU that waited for the VM and has not ended yet."""
    deadline = time.monotonic() + RELEASES_WITHIN_S
    gone: Collection[str] = ()
    while True:
        try:
            gone = await destination.release_images(vm, remove)
            why = "" if {disk.path for disk in remove} <= set(gone) else "they could not be removed"
        except VmtuneError as error:
            why = error.message
        if not why:
            return gone
        if time.monotonic() > deadline:
            log.info("images not released", vm=str(vm), reason=why)
            return gone
        await asyncio.sleep(RETRY_S)
