"""The disks that a migration copies: what is made for them, and how far each is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from enum import StrEnum

from vmtune.model.host.disks import Disk, Qcow2


class SourceImage(StrEnum):
    """What has become of the source's image of a disk that was copied."""

    KEPT = "kept"
    REMOVING = "removing"
    """It is about to be removed, and nobody knows yet whether it was."""
    REMOVED = "removed"
    UNKNOWN = "unknown"
    """It was about to be removed, and whether it was could not be found out."""


@dataclass(frozen=True, slots=True)
class CopiedDisk:
    """A disk that is copied along with a migration.

    :param target: its name in the configuration (``vda``).
    :param path: of its file or device, the same on both hosts.
    :param created: the image did not exist on the destination before: what is there now was made
        for this migration, and is removed where the VM does not arrive.
    :param intended: it is about to be made, and nobody knows yet whether it was: what is there is
        removed only where it is empty.
    :param format: of the image, ``raw`` or ``qcow2``; empty where it is not known.
    :param qcow2: how the source's image was made, and the destination's is; None where it is not
        known.
    :param needed_bytes: what the copy takes as the migration begins; 0 where that is not known.
    :param total_bytes: what has to be copied, which grows with what the guest writes; 0 where it is
        not known yet. *copied_bytes* is how much of it was.
    :param ready_ms: after how long, since the migration's start, the copy had caught up with the
        guest; None while it has not.
    :param bytes_per_s: copied, and *written_bytes_per_s* what the guest wrote meanwhile, in the
        last seconds before it was looked at.
    :param left_ms: until the copy has caught up; None where that is not known.
    :param converges: whether it will at these rates; None while that is not known.
    :param identity: of the source's file, as :attr:`Disk.identity`; empty where it is not known.
    :param source_image: what has become of that file; *source_image_reason* is why it is still
        there, or why that is not known, where it was to be removed.
    """

    target: str
    path: str
    _: KW_ONLY
    created: bool = False
    intended: bool = False
    format: str = ""
    qcow2: Qcow2 | None = None
    needed_bytes: int = 0
    total_bytes: int = 0
    copied_bytes: int = 0
    ready_ms: int | None = None
    bytes_per_s: int = 0
    written_bytes_per_s: int = 0
    left_ms: int | None = None
    converges: bool | None = None
    identity: str = ""
    source_image: SourceImage = SourceImage.KEPT
    source_image_reason: str = ""

    @property
    def to_come_bytes(self) -> int:
        """What the copy will still take at the destination: until it has begun, as much as the
        image takes on the source."""
        if self.copied_bytes == 0 and self.needed_bytes:
            return self.needed_bytes
        return max(0, self.total_bytes - self.copied_bytes)


@dataclass(frozen=True, slots=True)
class Mirrored:
    """How far QEMU is with the copy of a disk (query-block-jobs).

    :param ready: the copy has caught up, and follows the guest.
    """

    total_bytes: int
    copied_bytes: int
    ready: bool

    @property
    def left_bytes(self) -> int:
        """What is to be copied still."""
        return max(0, self.total_bytes - self.copied_bytes)


def to_copy(disks: tuple[Disk, ...]) -> tuple[CopiedDisk, ...]:
    """The record of disks that are to be copied."""
    return tuple(
        CopiedDisk(
            disk.target,
            disk.path,
            format=disk.format,
            qcow2=disk.qcow2,
            needed_bytes=disk.copy_bytes() or 0,
            total_bytes=disk.capacity_bytes or 0,
            identity=disk.identity,
        )
        for disk in disks
    )


def about_to_be_made(disks: tuple[CopiedDisk, ...]) -> tuple[CopiedDisk, ...]:
    """The record of *disks* just before their images are made."""
    return tuple(replace(disk, intended=True) for disk in disks)


def fresh_qcow2_bytes(capacity_bytes: int, made: Qcow2 | None = None) -> int:
    """The most that a qcow2 image is long to which nothing was written: header, refcount table and
    one refcount block in a cluster each, and 8 bytes of its L1 table for each L2 table, which is a
    cluster of entries of 8 or 16 bytes (docs/interop/qcow2.rst of QEMU).

    :param made: how; None for QEMU's defaults.
    """
    how = made or Qcow2()
    entries = how.cluster_bytes // (16 if how.extended_l2 else 8)
    return 3 * how.cluster_bytes + 8 * -(-capacity_bytes // (entries * how.cluster_bytes))


def arrived(disks: tuple[CopiedDisk, ...]) -> tuple[CopiedDisk, ...]:
    """*disks* of a migration that has completed, before which libvirt copies all of them."""
    return tuple(
        replace(disk, copied_bytes=disk.total_bytes, left_ms=None, converges=None) for disk in disks
    )


def caught_up_ms(disks: tuple[CopiedDisk, ...]) -> int:
    """After how long all copies had caught up, since the migration's start; 0 where none is copied,
    or one has not."""
    ready = [disk.ready_ms for disk in disks if disk.ready_ms is not None]
    return max(ready, default=0) if len(ready) == len(disks) else 0


def progressed(
    disks: tuple[CopiedDisk, ...], seen: Mapping[str, Mirrored], at_ms: int
) -> tuple[CopiedDisk, ...]:
    """*disks* with what QEMU says of them now. A copy never goes back, nor does its end.

    :param seen: by their targets; one that is missing is not copied right now.
    """
    return tuple(
        _progressed(disk, seen[disk.target], at_ms) if disk.target in seen else disk
        for disk in disks
    )


def _progressed(disk: CopiedDisk, now: Mirrored, at_ms: int) -> CopiedDisk:
    ready_ms = disk.ready_ms
    if ready_ms is None and now.ready:
        ready_ms = at_ms
    return replace(
        disk,
        total_bytes=max(disk.total_bytes if disk.copied_bytes else 0, now.total_bytes),
        copied_bytes=max(disk.copied_bytes, now.copied_bytes),
        ready_ms=ready_ms,
    )
