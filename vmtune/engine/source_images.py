"""What becomes of the source's images of disks that were copied, once the migration has ended.

They stay unless the operator wants them removed, and then until it is proven that the VM runs at
the destination with images of its own. What is going to be removed is recorded before, and what
came of it after: whoever finds the former finishes it, or says that it is not known.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace

import structlog

from vmtune.engine.copied_disks import released
from vmtune.engine.notes import Hosts
from vmtune.errors import CommandRefused, Problem, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.disks import Disk, DiskAtHost
from vmtune.model.host.facts import VmState
from vmtune.model.migration.disks import CopiedDisk, SourceImage
from vmtune.model.migration.record import Migration, MigrationFields, MigrationState, Trigger
from vmtune.model.plan.outcome import Outcome, Status
from vmtune.model.tunables.rows.storage import REMOVE, SOURCE_IMAGES

log = structlog.get_logger(__name__)

ANSWERS_WITHIN_S = 15.0
"""How long a host may take: its libvirt may just be started again, or still have the VM defined."""
RETRY_S = 0.2

Save = Callable[[MigrationFields], Awaitable[object]]


async def settle_source_images(
    record: Migration, end: MigrationFields, hosts: Hosts, save: Save
) -> MigrationFields:
    """Remove the source's images where they are to be and may be.

    :param end: what completes the record; only one that has completed has images removed.
    :param save: records what is going to be done, before it is.
    :return: *end*, with what came of it.
    """
    if record.trigger is not Trigger.VMTUNE or record.wanted.get(SOURCE_IMAGES) != REMOVE:
        return end
    if end.get("state") is not MigrationState.COMPLETED or not record.disks:
        return end
    disks = end.get("disks", record.disks)
    source, destination = await hosts.source(), await hosts.destination()
    against = await _against(record, disks, destination)
    settled = {t: _stays(disk, why) for t, why in against.items() for disk in [_of(disks, t)]}
    going = [disk for disk in disks if disk.target not in against]
    left: tuple[Problem, ...] = ()
    if going:
        intended = (settled.get(d.target) or _with(d, SourceImage.REMOVING) for d in disks)
        await save(MigrationFields(disks=tuple(intended)))
        for disk in going:
            settled[disk.target] = await _removed(record, source, disk)
        if any(settled[disk.target].source_image is not SourceImage.UNKNOWN for disk in going):
            _, left = await released(record.vm, source, (), record.source)
    ended = tuple(settled[disk.target] for disk in disks)
    return end | MigrationFields(
        disks=ended,
        problems=(*end.get("problems", record.problems), *_problems(record, ended), *left),
        outcomes=tuple(_outcomes(end.get("outcomes", record.outcomes), ended)),
    )


def _of(disks: Iterable[CopiedDisk], target: str) -> CopiedDisk:
    return next(disk for disk in disks if disk.target == target)


def _with(disk: CopiedDisk, state: SourceImage, why: str = "") -> CopiedDisk:
    return replace(disk, source_image=state, source_image_reason=why)


def _stays(disk: CopiedDisk, why: str) -> CopiedDisk:
    """*disk* that is not removed now; whoever died before may have."""
    begun = disk.source_image is SourceImage.REMOVING
    return _with(disk, SourceImage.UNKNOWN if begun else SourceImage.KEPT, why)


async def _against(
    record: Migration, disks: tuple[CopiedDisk, ...], destination: Driver | None
) -> dict[str, str]:
    """By the disks' targets why the source's images stay; without those that may go."""
    if destination is None:
        return dict.fromkeys((d.target for d in disks), "it is not known where the VM is")
    deadline = time.monotonic() + ANSWERS_WITHIN_S
    while True:
        try:
            state = await destination.vm_state(record.vm)
            why = "" if state is VmState.RUNNING else f"the VM is {state.value} on "
            why += record.destination if why else ""
            there = {disk.target: disk for disk in await destination.disks(record.vm)}
        except VmtuneError as error:
            why = f"{record.destination} does not say whether the VM runs there: {error.message}"
        if not why or time.monotonic() > deadline:
            break
        await asyncio.sleep(RETRY_S)
    if why:
        return dict.fromkeys((disk.target for disk in disks), why)
    found = {disk.target: _no_own_image(disk, there.get(disk.target)) for disk in disks}
    return {target: why for target, why in found.items() if why}


def _no_own_image(disk: CopiedDisk, there: Disk | None) -> str:
    """Why it is not certain that the VM has an image of its own there; empty where it is: that was
    made for it, where there was none, or both files were seen."""
    if there is None or not there.path:
        return "the VM has no such disk at the destination"
    same = DiskAtHost(True, there.identity).is_same(Disk(disk.target, identity=disk.identity))
    if same:
        return "the VM runs with it"
    made_for_it = disk.created and there.path == disk.path
    return "" if made_for_it or same is False else "it is not known whether the VM runs with it"


async def _removed(record: Migration, source: Driver, disk: CopiedDisk) -> CopiedDisk:
    """What came of removing an image. A host that does not answer is asked again for a while."""
    begun = disk.source_image is SourceImage.REMOVING
    deadline = time.monotonic() + ANSWERS_WITHIN_S
    while True:
        try:
            stays = (await source.remove_source_images(record.vm, [disk]))[disk.target]
            return _with(disk, SourceImage.KEPT if stays else SourceImage.REMOVED, stays)
        except VmtuneError as error:
            why = error.message
            begun = begun or not isinstance(error, CommandRefused)
        if time.monotonic() > deadline:
            log.info("source's image not removed", vm=str(record.vm), path=disk.path, reason=why)
            return _with(disk, SourceImage.UNKNOWN if begun else SourceImage.KEPT, why)
        await asyncio.sleep(RETRY_S)


def _problems(record: Migration, disks: Iterable[CopiedDisk]) -> Iterator[Problem]:
    for disk in disks:
        where, why = f"{disk.path} on {record.source}", disk.source_image_reason
        if disk.source_image is SourceImage.KEPT:
            remedy = f"if nothing needs it: rm {disk.path} on {record.source}"
            yield Problem("disks", "source_image_kept", f"{where} was not removed: {why}", remedy)
        elif disk.source_image is SourceImage.UNKNOWN:
            message = f"whether {where} was removed is not known: {why}"
            remedy = f"look whether it is there; if nothing needs it: rm {disk.path}"
            yield Problem("disks", "source_image_unknown", message, remedy)


def _outcomes(outcomes: Iterable[Outcome], disks: Iterable[CopiedDisk]) -> Iterator[Outcome]:
    """With what came of the operator's choice."""
    left = [disk for disk in disks if disk.source_image is not SourceImage.REMOVED]
    unknown = any(disk.source_image is SourceImage.UNKNOWN for disk in left)
    status = Status.UNKNOWN if unknown else Status.NOT_APPLIED
    why = "; ".join(f"{disk.target}: {disk.source_image_reason}" for disk in left)
    for outcome in outcomes:
        if outcome.tunable == SOURCE_IMAGES and left:
            yield replace(outcome, status=status, seen=None, reason=why)
        else:
            yield outcome
