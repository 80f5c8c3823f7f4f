"""The sizes of a QEMU's virtio queues, over any monitor."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from vmtune.errors import CommandRefused
from vmtune.hypervisor.qemu.monitor import Monitor
from vmtune.hypervisor.qemu.names import children
from vmtune.hypervisor.qemu.qom import children_of
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.model.host.virtio_queues import VirtioQueue

_FOLDERS = ("/machine/peripheral", "/machine/peripheral-anon")
_PROPERTIES = {"virtio-blk-pci": "queue-size", "virtio-scsi-pci": "virtqueue_size"}
_FIXED_ENTRIES = {"virtio-rng-pci": 8, "virtio-balloon-pci": 128, "virtio-serial-pci": 128}
_SUFFIXES = ("", "-transitional", "-non-transitional")
_TYPES: Mapping[str, str] = {
    f"{model}{suffix}": model for model in (*_PROPERTIES, *_FIXED_ENTRIES) for suffix in _SUFFIXES
}
"""Types of devices that QEMU itself serves, by model. It answers for another process's queues
(vhost-user) by asking that process, which stops them; network cards may be such devices. The other
types of these suffixes are their own: ``vhost-user-blk-pci``, ``vhost-scsi-pci``."""


async def virtio_queues(monitor: Monitor) -> list[VirtioQueue]:
    """The first queue of each disk, SCSI controller, entropy device, balloon and serial controller
    that has one. Empty where QEMU does not say; see
    :meth:`vmtune.hypervisor.protocol.Driver.virtio_queues`.

    ``x-query-virtio-status``, which has the number of queues, is never sent: QEMU 11.1.3 aborts.

    The sizes without a property are those of QEMU's virtio-rng.c, virtio-balloon.c and
    virtio-serial-bus.c.
    """
    lists = await asyncio.gather(*(children_of(monitor, folder) for folder in _FOLDERS))
    with reading_reply("its devices"):
        found = [
            (f"{folder}/{device}", model)
            for folder, reply in zip(_FOLDERS, lists, strict=True)
            for type_, model in _TYPES.items()
            for device in children(reply, type_)
        ]
    queues = await asyncio.gather(*(_first(monitor, path, model) for path, model in found))
    return sorted(filter(None, queues), key=lambda queue: queue.device)


async def _first(monitor: Monitor, path: str, model: str) -> VirtioQueue | None:
    try:
        status = await monitor.execute(
            "x-query-virtio-queue-status", {"path": f"{path}/virtio-backend", "queue": 0}
        )
        configured = _FIXED_ENTRIES.get(model)
        if configured is None:
            question = {"path": path, "property": _PROPERTIES[model]}
            configured = await monitor.execute("qom-get", question)
    except CommandRefused:
        return None  # unplugged meanwhile, or a QEMU without the command
    entries = status.get("vring-num") if isinstance(status, Mapping) else None
    if not isinstance(entries, int) or not isinstance(configured, int):
        return None  # QEMU may change the replies of commands whose names begin with x-
    return VirtioQueue(path.rpartition("/")[2], entries, configured)
