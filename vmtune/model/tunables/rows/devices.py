"""Rows of what a VM's devices start with, which libvirt alone knows of.

Words and ranges: libvirt's docs/formatdomain.rst; QEMU's include/hw/virtio/virtio.h
(VIRTIO_QUEUE_MAX) and Linux's include/linux/if_tun.h (MAX_TAP_QUEUES).
"""

from __future__ import annotations

from vmtune.model.tunables.tunable import Kind, LibvirtKind, LibvirtName, Route, Side, Tunable
from vmtune.units import Unit

LEFT_TO_QEMU = "default"
"""The word for a choice that the configuration leaves to QEMU."""


def _driver(devices: str, attribute: str) -> LibvirtName:
    return LibvirtName(LibvirtKind.XML, f"devices/{devices}/driver@{attribute}")


DEVICES = (
    Tunable(
        "virtio_net_queues", "Queues of virtio network cards",
        "Pairs of queues of each virtio network card that is not on user-mode networking. The "
        "guest uses at most one for each of its vCPUs.",
        Kind.INTEGER, Route.BOOT, Side.BOTH, Unit.COUNT, 1, 1, 256,
        libvirt=_driver("interface", "queues"),
    ),
    Tunable(
        "virtio_scsi_queues", "Queues of virtio SCSI controllers",
        "Request queues of each virtio SCSI controller; 0 is QEMU's own choice, one for each "
        "vCPU.",
        Kind.INTEGER, Route.BOOT, Side.BOTH, Unit.COUNT, 0, 0, 1021,
        libvirt=_driver("controller", "queues"), zero="QEMU's choice",
    ),
    Tunable(
        "disk_cache", "Cache of disks",
        "How writes to each disk use the host's page cache. With none and directsync they bypass "
        "it; unsafe loses data when the host stops.",
        Kind.CHOICE, Route.BOOT, Side.BOTH, default=LEFT_TO_QEMU,
        choices=(LEFT_TO_QEMU, "none", "writethrough", "writeback", "directsync", "unsafe"),
        libvirt=_driver("disk", "cache"),
    ),
    Tunable(
        "disk_io", "Asynchronous I/O of disks",
        "How QEMU hands each disk's requests to the kernel: native and io_uring queue them, "
        "threads blocks a worker thread for each. native needs a cache of none or directsync.",
        Kind.CHOICE, Route.BOOT, Side.BOTH, default=LEFT_TO_QEMU,
        choices=(LEFT_TO_QEMU, "native", "threads", "io_uring"),
        libvirt=_driver("disk", "io"),
    ),
    Tunable(
        "disk_discard", "Discard of disks",
        "Whether what the guest trims is freed in the image or on the device (unmap), or stays "
        "allocated (ignore).",
        Kind.CHOICE, Route.BOOT, Side.BOTH, default=LEFT_TO_QEMU,
        choices=(LEFT_TO_QEMU, "unmap", "ignore"),
        libvirt=_driver("disk", "discard"),
    ),
)  # fmt: skip
