"""How the qcow2 images of a running QEMU were made, over any monitor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vmtune.errors import CommandRefused
from vmtune.hypervisor.qemu.monitor import Monitor
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.model.host.disks import Disk, Qcow2


async def with_options(monitor: Monitor, disks: Sequence[Disk]) -> Sequence[Disk]:
    """*disks*, those that are qcow2 images with how they were made, by their paths. Where QEMU does
    not say it they are as before."""
    if not any(disk.format == "qcow2" and disk.path for disk in disks):
        return disks
    try:
        nodes = await monitor.execute("query-named-block-nodes", {"flat": True})
    except CommandRefused:
        return disks
    found: dict[str, Qcow2] = {}
    with reading_reply("its block nodes"):
        for node in nodes:
            image = node["image"]
            special = image.get("format-specific", {})
            if special.get("type") == "qcow2" and "cluster-size" in image:
                found[str(image["filename"])] = Qcow2(
                    int(image["cluster-size"]),
                    bool(special["data"].get("lazy-refcounts", False)),
                    bool(special["data"].get("extended-l2", False)),
                )
    return [
        replace(disk, qcow2=found.get(disk.path)) if disk.format == "qcow2" else disk
        for disk in disks
    ]
