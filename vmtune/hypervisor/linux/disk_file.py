"""What this machine has at the path of a disk: a file or a device, its folder, and its room."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from vmtune.hypervisor.linux.qemu_process import PROC
from vmtune.model.host.disks import BY_DEVICE, DISK_NOT_SEEN, DiskAtHost

_QCOW2_HEADER = struct.Struct(">4sIQIIQ")
"""Magic, version, backing file's offset and size, cluster bits, and the guest's size
(docs/interop/qcow2.rst of QEMU)."""
_QCOW2_MAGIC = b"QFI\xfb"
_LONGEST_NAME = 1023
_SECTOR_BYTES = 512
_OWNER, _GROUP, _OTHERS = stat.S_IXUSR, stat.S_IXGRP, stat.S_IXOTH


def look_at_disk(root: Path, path: str, user: tuple[int, int] | None = None) -> DiskAtHost:
    """What is at *path*; nothing is known where this process may not look. Blocks.

    An identity is of this machine's devices, so it says something next to another one only if
    both are of this machine.

    :param root: that of the process which sees *path*.
    :param user: the user and the group whose way to it is judged; None not to judge it.
    """
    file = root / path.lstrip("/")
    try:
        folder = os.statvfs(file.parent)
        device = file.parent.stat().st_dev
    except FileNotFoundError:
        return DiskAtHost(present=False, folder=False)
    except OSError:
        return DISK_NOT_SEEN
    at = DiskAtHost(
        present=False,
        folder=True,
        free_bytes=folder.f_bavail * folder.f_frsize,
        file_system=str(device),
        writable=not folder.f_flag & os.ST_RDONLY,
        reachable=_is_reachable(root, file.parent, user),
    )
    try:
        found = file.stat()
    except FileNotFoundError:
        return at
    except OSError:
        return DISK_NOT_SEEN
    if stat.S_ISBLK(found.st_mode):
        return _device(replace(at, identity=identity_of(found)), found.st_rdev)
    form, capacity = _read_header(file, found.st_size)
    return replace(
        at,
        present=True,
        identity=identity_of(found),
        format=form,
        capacity_bytes=capacity,
        allocated_bytes=found.st_blocks * _SECTOR_BYTES,
    )


def identity_of(found: os.stat_result) -> str:
    """Which file or device of this machine it is, as :attr:`Disk.identity`."""
    if stat.S_ISBLK(found.st_mode):
        return f"{BY_DEVICE}{_boot_id()}/device/{found.st_rdev}"
    return f"{BY_DEVICE}{_boot_id()}/{found.st_dev}/{found.st_ino}"


def _device(at: DiskAtHost, number: int) -> DiskAtHost:
    folder = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    at = replace(at, present=True)
    try:
        size = int((folder / "size").read_text()) * _SECTOR_BYTES
        writable = (folder / "ro").read_text().strip() == "0"
    except (OSError, ValueError):
        return replace(at, writable=None)
    return replace(at, capacity_bytes=size, writable=writable, format="raw")


def _read_header(file: Path, size: int) -> tuple[str, int | None]:
    """The format, and what a guest sees. Any file is a raw image; those that begin as another
    format that is not known here are told as raw, too."""
    try:
        with file.open("rb") as opened:
            header = opened.read(_QCOW2_HEADER.size)
    except OSError:
        return "", None
    if header[:4] != _QCOW2_MAGIC or len(header) < _QCOW2_HEADER.size:
        return "raw", size
    capacity: int = _QCOW2_HEADER.unpack(header)[-1]
    return "qcow2", capacity


def _is_reachable(root: Path, folder: Path, user: tuple[int, int] | None) -> bool | None:
    """Whether the user gets through all folders. A group that may is taken for one that the user
    belongs to, and root for one whom nothing stops."""
    if user is None:
        return None
    try:
        modes = [at.stat() for at in (folder, *folder.parents) if at.is_relative_to(root)]
    except OSError:
        return None
    return all(may_enter(mode.st_mode, mode.st_uid, mode.st_gid, user) for mode in modes)


def may_enter(mode: int, owner: int, group: int, user: tuple[int, int]) -> bool:
    """Whether a user, with its group, may get into a folder of that mode and owner, as far as can
    be told without knowing its other groups."""
    uid, gid = user
    if uid == 0:
        return True
    if owner == uid:
        return bool(mode & _OWNER)
    if group == gid:
        return bool(mode & _GROUP)
    return bool(mode & (_GROUP | _OTHERS))


def _boot_id() -> str:
    """Of the kernel that runs here: device numbers say nothing next to another's."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def names_beneath(file: Path) -> str:
    """What a qcow2 image says that it lies on; empty for other files and for one that lies on
    nothing.

    :raise OSError: it cannot be read.
    """
    with file.open("rb") as opened:
        header = opened.read(_QCOW2_HEADER.size)
        if header[:4] != _QCOW2_MAGIC or len(header) < _QCOW2_HEADER.size:
            return ""
        _, _, offset, length, _, _ = _QCOW2_HEADER.unpack(header)
        opened.seek(offset)
        return opened.read(min(length, _LONGEST_NAME)).decode(errors="replace") if offset else ""


def opened_by(found: os.stat_result, but: Collection[int]) -> int | None:
    """A process of this machine that has a file open; None where none has.

    :param but: processes that may.
    :raise PermissionError: not every process lets this one see what it has open, as none of other
        users' does where it is not root's; none of those that do has it.
    """
    wanted = found.st_dev, found.st_ino
    unseen = not (PROC / "1").exists()  # a mount of /proc that hides processes (proc(5), hidepid)
    for folder in PROC.glob("[0-9]*"):
        if int(folder.name) in but:
            continue
        try:
            if wanted in _opened(folder):
                return int(folder.name)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        except OSError:
            # The first one starts the others: an image it has not.
            unseen = unseen or folder.name != "1"
    if unseen:
        raise PermissionError("not every process lets vmtune see which files it has open")
    return None


def _opened(process: Path) -> Iterator[tuple[int, int]]:
    """The devices and inodes of the files that it has open."""
    for place in (process / "fd").iterdir():
        try:
            seen = place.stat()
        except FileNotFoundError:
            continue  # it has just been closed
        yield seen.st_dev, seen.st_ino
