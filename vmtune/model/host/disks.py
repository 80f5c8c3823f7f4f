"""A VM's disks, and what another host has at their paths."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class DiskKind(StrEnum):
    """Where a disk's data is."""

    FILE = "file"
    BLOCK = "block"
    """A block device of the host."""
    NETWORK = "network"
    """Storage that QEMU itself reaches by network: the same from each host."""
    OTHER = "other"


BY_DEVICE = "device:"
"""How identities begin that are of a kernel's devices and inodes: two that differ are two files.
Others name a server's folder, which may have several names."""
DEVICES = "/dev/"
_UNIT = "[0-9a-f]{16}(?:[0-9a-f]{16})?"
_OF_ONE_UNIT = re.compile(
    rf"/dev/disk/by-id/(?:wwn-0x{_UNIT}|scsi-3{_UNIT}|nvme-eui\.{_UNIT}"
    rf"|dm-uuid-(?:part\d+-)?mpath-3{_UNIT})(?:-part\d+)?"
    rf"|/dev/disk/by-path/ip-[^/]+-iscsi-[^/]+-lun-\d+(?:-part\d+)?"
    rf"|/dev/mapper/3{_UNIT}(?:-?p(?:art)?\d+)?"
)
"""Links of udev and names of multipath that say which unit of storage it is: by the number that it
alone has in the world (SCSI's NAA, NVMe's EUI-64), or by its iSCSI target."""


@dataclass(frozen=True, slots=True)
class Qcow2:
    """How a qcow2 image was made, as far as that stays with it (docs/interop/qcow2.rst of QEMU).

    :param cluster_bytes: in which it is allocated.
    :param lazy_refcounts: counts of references are written late, and mended after a crash.
    :param extended_l2: parts of a cluster are allocated, too.
    :param compat: the oldest release of QEMU that reads it, ``0.10`` or ``1.1``.
    :param refcount_bits: the width of a count of references.
    :param compression: of compressed clusters, ``zlib`` or ``zstd``.
    :param external_data: its data is in a file of its own.
    """

    cluster_bytes: int = 64 << 10
    lazy_refcounts: bool = False
    extended_l2: bool = False
    compat: str = "1.1"
    refcount_bits: int = 16
    compression: str = "zlib"
    external_data: bool = False

    @property
    def lost(self) -> tuple[str, ...]:
        """What an image that libvirt creates does not have of it: its storage volumes know no
        option for that."""
        usual = Qcow2()
        found = {
            f"refcounts of {self.refcount_bits} bits": self.refcount_bits != usual.refcount_bits,
            f"{self.compression} compression": self.compression != usual.compression,
            "an external data file": self.external_data,
        }
        return tuple(name for name, has in found.items() if has)


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume of a storage pool, by which a VM names a disk: each host has its own pool."""

    pool: str
    name: str

    def __str__(self) -> str:
        return f"{self.pool}/{self.name}"


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk of a running VM.

    :param target: its name in the configuration (``vda``).
    :param path: of its file or device; empty for others and for an empty drive.
    :param format: ``raw``, ``qcow2``, ...; empty where nothing says it.
    :param device: ``disk``, ``cdrom``, ``floppy``, ``lun``, or ``flash`` for the firmware's, whose
        content is sent as memory is.
    :param discard: ``unmap`` where what the guest trims is freed; empty is QEMU's default, which
        keeps it.
    :param backing: the files and devices beneath it, the nearest first.
    :param identity: what says which file it is, comparable between hosts; empty where that cannot
        be seen.
    :param capacity_bytes: what the guest sees; *allocated_bytes* is what it takes. None where
        nothing says it.
    :param qcow2: how that image was made; None for other formats, and where nothing says it.
    :param encrypted: QEMU encrypts what it writes there.
    :param volume: the volume that the VM names instead of *path*, which is where its host has it;
        None for others.
    """

    target: str
    kind: DiskKind = DiskKind.FILE
    path: str = ""
    format: str = ""
    device: str = "disk"
    read_only: bool = False
    shareable: bool = False
    cache: str = ""
    discard: str = ""
    backing: tuple[str, ...] = ()
    identity: str = ""
    capacity_bytes: int | None = None
    allocated_bytes: int | None = None
    qcow2: Qcow2 | None = None
    encrypted: bool = False
    volume: Volume | None = None

    @property
    def where(self) -> str:
        """The path, or the volume where its host does not say where that is."""
        return self.path or (str(self.volume) if self.volume is not None else "")

    @property
    def is_device(self) -> bool:
        """Whether it is a device, also where the configuration calls it a file."""
        return self.kind is DiskKind.BLOCK or self.path.startswith(DEVICES)

    @property
    def names_unit(self) -> bool:
        """Whether its path is that of one unit of storage: what another host has of that path is
        the same."""
        return _OF_ONE_UNIT.fullmatch(self.path) is not None

    def copy_bytes(self, *, looks_for_zeroes: bool = False) -> int | None:
        """What a copy takes on its file system; None where nothing says it.

        QEMU zeroes the target before it copies. A raw file keeps holes then only where both its
        node and the source's way to it may discard, which libvirt lets them where it also looks for
        zeroes; else all of it is allocated (``handle_aiocb_write_zeroes`` of block/file-posix.c).

        :param looks_for_zeroes: the copy of this disk does.
        """
        keeps_holes = self.format != "raw" or (looks_for_zeroes and self.discard == "unmap")
        if keeps_holes or self.capacity_bytes is None:
            return self.allocated_bytes
        return max(self.capacity_bytes, self.allocated_bytes or 0)

    @property
    def is_copied(self) -> bool:
        """Whether libvirt copies it when nobody names disks (qemuMigrationAnyCopyDisk of
        src/qemu/qemu_migration.c)."""
        empty = not self.where and self.kind is not DiskKind.NETWORK
        return not (self.read_only or self.shareable or empty)


@dataclass(frozen=True, slots=True)
class DiskAtHost:
    """What a host has at the path of a disk of another host's VM. None is not known.

    :param present: there is a file or device of that path.
    :param identity: of that one, as :attr:`Disk.identity`.
    :param folder: the folder is there.
    :param free_bytes: room in it.
    :param file_system: which file system that room is of, comparable within the host; empty where
        it is not known.
    :param writable: the file system or device is not read-only.
    :param reachable: the user that QEMU runs as gets through the folders.
    :param format: of the file, ``raw`` or ``qcow2``; empty for others, and where nobody says it.
    :param capacity_bytes: what a guest would see of it; *allocated_bytes* is what it takes.
    :param backing_missing: files beneath the disk that are not there.
    :param used_by: another VM of the host that has it, or has it beneath a disk; empty for none.
    :param in_use: that VM runs, and may write to it.
    :param promised_bytes: what copies of other VMs will still take of that room.
    :param path: where the host has a volume of a pool; empty for other disks.
    """

    present: bool | None = None
    identity: str = ""
    folder: bool | None = None
    free_bytes: int | None = None
    file_system: str = ""
    writable: bool | None = None
    reachable: bool | None = None
    format: str = ""
    capacity_bytes: int | None = None
    allocated_bytes: int | None = None
    backing_missing: tuple[str, ...] = ()
    used_by: str = ""
    in_use: bool = False
    promised_bytes: int = 0
    path: str = ""

    def is_same(self, disk: Disk) -> bool | None:
        """Whether it is the same file as *disk*; None where that cannot be known."""
        if self.present is False:
            return False
        if disk.names_unit and self.path in ("", disk.path):
            return True
        if not self.identity or not disk.identity:
            return None
        if self.identity == disk.identity:
            return True
        by_device = self.identity.startswith(BY_DEVICE) and disk.identity.startswith(BY_DEVICE)
        return False if by_device else None


DISK_NOT_SEEN = DiskAtHost()


@dataclass(frozen=True, slots=True)
class DiskRoom:
    """What images take that are to be created in one file system.

    :param where: which one, comparable within the host.
    :param free_bytes: room in it now; *promised_bytes* is what copies of other VMs will still take
        of it.
    :param folders: the images' folders, sorted.
    """

    where: str
    needed_bytes: int
    free_bytes: int
    promised_bytes: int = 0
    folders: tuple[str, ...] = ()

    @property
    def available_bytes(self) -> int:
        """What these images may take."""
        return max(0, self.free_bytes - self.promised_bytes)
