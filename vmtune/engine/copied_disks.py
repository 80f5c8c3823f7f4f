"""The disks that a migration copies: what becomes of images at its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from uuid import UUID

import structlog

from vmtune.errors import Problem, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.record import Migration, MigrationState

log = structlog.get_logger(__name__)

RELEASES_WITHIN_S = 15.0
RETRY_S = 0.2


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
