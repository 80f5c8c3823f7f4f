"""The disks of a QEMU without libvirt, as it says itself."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vmtune.hypervisor.linux.disk_file import identity_of
from vmtune.hypervisor.qemu.monitor import Monitor
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.model.host.disks import Disk, DiskAtHost, DiskKind

_FLASH = re.compile(r"/machine/\w+\.flash\d+")
"""The firmware's, which the board itself has (pc_pflash_create of QEMU's hw/i386/pc_sysfw.c). What
they hold is sent as memory, and the destination writes it to its file (hw/block/pflash_cfi01.c)."""


async def read_disks(monitor: Monitor, pid: int | None) -> dict[str, Disk]:
    """The disks, by their block nodes. Their targets are the names of their devices, which are the
    same on a QEMU that is started alike.

    :param pid: of QEMU, whose root says which file is meant.
    """
    reply = await monitor.execute("query-block")
    found: dict[str, Disk] = {}
    with reading_reply("its block devices"):
        for block in reply:
            inserted = block.get("inserted")
            if inserted:
                found[str(inserted["node-name"])] = _disk(block, inserted, pid)
    return found


def _disk(
    block: Mapping[str, Any],
    inserted: Mapping[str, Any],
    pid: int | None,  # any JSON
) -> Disk:
    image = inserted["image"]
    kind, path = _where(str(image["filename"]))
    return Disk(
        target=_target(block),
        kind=kind,
        path=path,
        format=str(inserted["drv"]),
        device=_device(block),
        read_only=bool(inserted["ro"]),
        backing=_backing(image),
        identity=identity_at(path, pid),
        capacity_bytes=int(image["virtual-size"]),
        allocated_bytes=int(image["actual-size"]) if "actual-size" in image else None,
    )


def _device(block: Mapping[str, Any]) -> str:  # any JSON
    if block.get("tray_open") is not None:
        return "cdrom"
    return "flash" if _FLASH.fullmatch(str(block.get("qdev", ""))) else "disk"


def _target(block: Mapping[str, Any]) -> str:  # any JSON
    """The name of its back end (-drive), or else of its device."""
    parts = [part for part in str(block.get("qdev", "")).split("/") if part]
    named = parts[2] if parts[:2] in (["machine", "peripheral"], ["machine", "peripheral-anon"]) \
        and len(parts) > 2 else (parts[0] if len(parts) == 1 else "")  # fmt: skip
    return str(block.get("device") or named)


def _where(filename: str) -> tuple[DiskKind, str]:
    if filename.startswith("/dev/"):
        return DiskKind.BLOCK, filename
    if "://" in filename or filename.startswith("json:"):
        return DiskKind.OTHER, ""
    return DiskKind.FILE, filename


def _backing(image: Mapping[str, Any]) -> tuple[str, ...]:  # any JSON
    found: list[str] = []
    beneath = image.get("backing-image")
    while beneath:
        found.append(str(beneath["filename"]))
        beneath = beneath.get("backing-image")
    return tuple(found)


def identity_at(path: str, pid: int | None) -> str:
    """Of the file that QEMU means by *path*; empty where that cannot be seen."""
    if not path or pid is None:
        return ""
    process = Path(f"/proc/{pid}")
    start = "root" if path.startswith("/") else "cwd"
    for place in (*_opened(process, path), process / start / path.lstrip("/")):
        try:
            seen = os.stat(place)
        except OSError:
            continue
        return identity_of(seen)
    return ""


def _opened(process: Path, path: str) -> Iterator[Path]:
    """What it has opened under that path: its root may be out of sight."""
    with contextlib.suppress(OSError):
        for place in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(place) == path:
                    yield place


def as_seen(disk: Disk) -> DiskAtHost:
    """What the QEMU that waits has as *disk*."""
    return DiskAtHost(
        present=True,
        identity=disk.identity,
        folder=True,
        writable=not disk.read_only,
        format=disk.format,
        capacity_bytes=disk.capacity_bytes,
        allocated_bytes=disk.allocated_bytes,
    )
