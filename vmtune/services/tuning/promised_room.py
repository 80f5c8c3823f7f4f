"""What copies of other VMs' disks will still take of a host's room: those that are under way, and
those of VMs that evacuations are about to send there."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.disks import Disk, DiskAtHost
from vmtune.model.host.facts import VmFacts
from vmtune.model.host.hardware import Hardware, Offer
from vmtune.storage import Store

_DEVICES = PurePosixPath("/dev")


async def offer_of(store: Store, name: str, driver: Driver, vm: VmFacts, *, copies: bool) -> Offer:
    """What the host *name* offers of what *vm* needs, with the room that is promised to copies of
    other VMs.

    :param copies: *vm*'s disks are to be copied there: only then the room matters.
    """
    hardware = vm.hardware or Hardware()
    promised = await asyncio.to_thread(_promised, store, name, vm) if copies else {}
    if not promised:
        return await driver.offer(vm)
    # Asked along with the VM's own disks, of which file systems these are.
    asked = [Disk(f"{_PREFIX}{path}", path=path) for path in promised]
    offer = await driver.offer(
        replace(vm, hardware=replace(hardware, disks=(*hardware.disks, *asked)))
    )
    own = {t: at for t, at in offer.disks.items() if not t.startswith(_PREFIX)}
    taken: Counter[str] = Counter()
    for disk in asked:
        at = offer.disks.get(disk.target)
        taken[_where(disk.path, at)] += promised[disk.path]
    paths = {disk.target: disk.path for disk in hardware.disks}
    disks = {
        target: replace(at, promised_bytes=taken[_where(paths.get(target, ""), at)])
        for target, at in own.items()
    }
    return replace(offer, disks=disks)


_PREFIX = "promised:"


def _where(path: str, at: DiskAtHost | None) -> str:
    known = at.file_system if at is not None else ""
    return known or str(PurePosixPath(path).parent)


def _promised(store: Store, host: str, vm: VmFacts) -> Mapping[str, int]:
    """The bytes that are to come to each path of other VMs' images."""
    under_way = store.migrations.copying_to(host)
    found: Counter[str] = Counter()
    for uuid, copied in under_way.items():
        if uuid != vm.uuid:
            found.update({disk.path: disk.to_come_bytes for disk in copied})
    for uuid, disks in store.evacuations.promised_disks(host).items():
        if uuid != vm.uuid and not under_way.get(uuid):
            found.update({disk.path: disk.copy_bytes() or 0 for disk in disks})
    return {
        path: count
        for path, count in found.items()
        if count and not PurePosixPath(path).is_relative_to(_DEVICES)
    }
