"""The disks that a migration copies: what becomes of images at its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from uuid import UUID

import structlog

from vmtune.errors import Problem, VmtuneError
from vmtune.hypervisor.leftovers import PoolsLeft
from vmtune.hypervisor.protocol import Driver
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.record import Migration, MigrationState, Trigger

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
    :return: what was not removed, and what else is left.
    """
    if not record.disks or record.trigger is Trigger.OBSERVED:
        return ()
    problems: list[Problem] = []
    if source is not None:
        _, kept = await released(record.vm, source, (), record.source)
        problems += kept
    arrived = state is MigrationState.COMPLETED
    made = [] if arrived else [d for d in record.disks if d.created or d.intended]
    remove = [] if may_have_run else made
    gone: Collection[str] = ()
    if destination is not None:
        gone, kept = await released(record.vm, destination, remove, record.destination)
        problems += kept
    if may_have_run:
        problems += (_kept(disk, record) for disk in made)
    else:
        problems += (_left(disk, record.destination) for disk in made if disk.path not in gone)
    return tuple(problems)


def _kept(disk: CopiedDisk, record: Migration) -> Problem:
    return Problem(
        "disks",
        "image_kept",
        f"{disk.path} on {record.destination} was made for this migration, and may be "
        f"newer than the one on {record.source}: the guest may have run there",
        "compare both before you start the VM anywhere or remove one of them",
    )


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


async def released(
    vm: UUID, driver: Driver, remove: Collection[CopiedDisk], host: str
) -> tuple[Collection[str], tuple[Problem, ...]]:
    """What of *remove* is gone, and what else is left of the copies. A libvirt that is just being
    started again is given a while, and so is a QEMU that waited for the VM and has not ended yet.

    :param host: the name of the driver's.
    """
    deadline = time.monotonic() + RELEASES_WITHIN_S
    gone: set[str] = set()
    while True:
        left: tuple[Problem, ...] = ()
        try:
            gone.update(await driver.release_images(vm, remove))
        except PoolsLeft as error:
            gone.update(error.gone)
            left = (_not_released(host, error),)
        except VmtuneError as error:
            # Images that may be there are told each by itself.
            left = () if remove else (_not_released(host, error),)
        missing = {disk.path for disk in remove} - gone
        if not missing and not left:
            return gone, ()
        if time.monotonic() > deadline:
            log.info("images not released", vm=str(vm), missing=sorted(missing), left=str(left))
            return gone, left
        await asyncio.sleep(RETRY_S)


def _not_released(host: str, error: VmtuneError) -> Problem:
    problem = error.problems[0]
    return Problem(
        "disks",
        "copies_not_ended",
        f"something of the copies may be left on {host}: {error.message}",
        problem.remedy,
    )
