"""Rows of what a VM starts with, and of the host's limits."""

from __future__ import annotations

from vmtune.model.tunables.rows.names import MAX_INT
from vmtune.model.tunables.tunable import (
    Kind,
    LibvirtKind,
    LibvirtName,
    QmpKind,
    QmpName,
    Route,
    Side,
    Tunable,
)
from vmtune.units import Unit

BOOT = (
    Tunable(
        "dirty_ring_size_entries", "Dirty ring",
        "Entries of each vCPU's dirty ring; 0 tracks with a bitmap instead. Source and "
        "destination must agree under libvirt.",
        Kind.INTEGER, Route.BOOT, Side.BOTH, Unit.ENTRIES, 0, 0, 65536, True,
        qmp=QmpName(QmpKind.ACCELERATOR, "dirty-ring-size"),
        libvirt=LibvirtName(LibvirtKind.XML, "features/kvm/dirty-ring@size"),
        zero="bitmap",
    ),
    Tunable(
        "virtio_blk_queues", "Queues of virtio disks",
        "Queues of each virtio-blk disk. Each adds to the coroutine pool's demand.",
        Kind.INTEGER, Route.BOOT, Side.BOTH, Unit.COUNT, None, 1, 1024,
        qmp=QmpName(QmpKind.DEVICE, "num-queues"),
        libvirt=LibvirtName(LibvirtKind.XML, "devices/disk/driver@queues"),
    ),
    Tunable(
        "virtio_blk_queue_size", "Queue size of virtio disks",
        "Descriptors in each queue of each virtio-blk disk.",
        Kind.INTEGER, Route.BOOT, Side.BOTH, Unit.COUNT, 256, 2, 1024, True,
        qmp=QmpName(QmpKind.DEVICE, "queue-size"),
        libvirt=LibvirtName(LibvirtKind.XML, "devices/disk/driver@queue_size"),
    ),
)  # fmt: skip

HOST = (
    Tunable(
        "vm_max_map_count", "Memory maps of a process",
        "The kernel's limit on maps; each pooled coroutine of QEMU takes two. QEMU reads it "
        "once, at its start.",
        Kind.INTEGER, Route.HOST, Side.BOTH, Unit.COUNT, None, 1024, MAX_INT,
    ),
    Tunable(
        "net_core_optmem_max_bytes", "Socket option memory",
        "Zero-copy send needs it for its notifications; too little fails the migration.",
        Kind.INTEGER, Route.HOST, Side.SOURCE, Unit.BYTES, None, 4096, MAX_INT,
    ),
    Tunable(
        "locked_memory_bytes", "Lockable memory",
        "How much of its memory QEMU may lock; zero-copy send needs it.",
        Kind.INTEGER, Route.HOST, Side.SOURCE, Unit.BYTES, None, 0, 1 << 62,
        libvirt=LibvirtName(LibvirtKind.XML, "memtune/hard_limit"),
    ),
)  # fmt: skip
