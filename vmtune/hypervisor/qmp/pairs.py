"""Which disks of two QEMUs belong together."""

from __future__ import annotations

from collections.abc import Mapping

from vmtune.errors import CommandRefused
from vmtune.hypervisor.qmp.copies import Pair
from vmtune.hypervisor.qmp.disks import as_seen, read_disks
from vmtune.hypervisor.qmp.qemu import Qemu
from vmtune.model.host.disks import Disk
from vmtune.model.tunables.rows.storage import COPIES
from vmtune.model.tunables.texts import targets
from vmtune.model.tunables.tunable import Value


async def disks_of(qemu: Qemu) -> dict[str, Disk]:
    """Its disks, by their block nodes."""
    process = qemu.process()
    return await read_disks(qemu.monitor, process.pid if process is not None else None)


async def pairs_of(source: Qemu, waiting: Qemu, values: Mapping[str, Value]) -> list[Pair]:
    """The disks that a migration copies, as libvirt would choose them.

    :raise CommandRefused: one has no counterpart, or that is the same file.
    """
    if not any(values.get(name) is True for name in COPIES):
        return []
    named = values.get("copy_disks")
    there = {disk.target: (node, disk) for node, disk in (await disks_of(waiting)).items()}
    pairs: list[Pair] = []
    for node, disk in (await disks_of(source)).items():
        chosen = disk.target in targets(named) if isinstance(named, str) else disk.is_copied
        if not chosen:
            continue
        found = there.get(disk.target)
        if found is None or as_seen(found[1]).is_same(disk):
            raise CommandRefused(
                f"the QEMU that waits has no disk {disk.target} of its own",
                field="values.copy_storage",
                code="copy_not_waited_for",
                remedy="start it with the same devices, and an image of the same size for each",
            )
        pairs.append(Pair(disk.target, node, found[0]))
    return pairs
