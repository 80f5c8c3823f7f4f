"""How the qcow2 images of a running QEMU were made, over any monitor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

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
                found[str(image["filename"])] = _made(image, special["data"])
    return [
        replace(disk, qcow2=found.get(disk.path)) if disk.format == "qcow2" else disk
        for disk in disks
    ]


def _made(image: Mapping[str, Any], data: Mapping[str, Any]) -> Qcow2:  # any JSON
    """By ImageInfoSpecificQCow2 of QEMU's qapi/block-core.json."""
    return Qcow2(
        int(image["cluster-size"]),
        bool(data.get("lazy-refcounts", False)),
        bool(data.get("extended-l2", False)),
        compat=str(data.get("compat", "1.1")),
        refcount_bits=int(data.get("refcount-bits", 16)),
        compression=str(data.get("compression-type", "zlib")),
        external_data="data-file" in data,
    )
