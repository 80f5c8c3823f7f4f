"""What one measurement of the block, the boot or the updates benchmark is about: one of each
choice."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from annotated_types import Interval

from vmtune.bench.model.scenario.parts import KIB, MIB, MemoryBytes, Vcpus
from vmtune.units import Unit

LEAST_BLOCK_BYTES, MAX_BLOCK_BYTES = 512, 32 * MIB
"""Of one request; NBD servers need take no more than 32 MiB (NBD protocol, doc/proto.md)."""
MAX_IODEPTH = 4096
MAX_JOBS = 256
MAX_DISKS = 16
MAX_QUEUES = 64
MAX_IOTHREADS = 16
MAX_BRIDGES = 16
MAX_DEVICES = 256
DEVICES_ON_ROOT = 8
"""Devices of a boot on the root bus itself; more need bridges."""
DEVICES_ON_BRIDGE = 31
MAX_REMAPS = 100_000
MAX_SPINNING = 256
"""vCPUs of the benchmark of updates: each is a thread that spins."""


class NodeKind(StrEnum):
    """What the exported block node is."""

    NULL = "null-co"
    RAW = "raw"
    QCOW2 = "qcow2"
    VM = "vm"
    """What a VM that runs is on: a node of its QEMU, or a disk that its guest reads."""


class IoPattern(StrEnum):
    """fio's rw."""

    READ = "read"
    WRITE = "write"
    RW = "rw"
    RANDREAD = "randread"
    RANDWRITE = "randwrite"
    RANDRW = "randrw"

    @property
    def writes(self) -> bool:
        """Whether it does more than read."""
        return self not in (IoPattern.READ, IoPattern.RANDREAD)


class BootGuest(StrEnum):
    """What boots."""

    PROJECT = "project"
    """The project's own guest."""
    LINUX = "linux"
    """A Linux kernel with a small initramfs."""


class Firmware(StrEnum):
    """What runs before the guest's kernel."""

    SEABIOS = "seabios"
    OVMF = "ovmf"


class Accelerator(StrEnum):
    """What runs the guest's instructions."""

    KVM = "kvm"
    TCG = "tcg"


def _size(count: int) -> str:
    """``4k``, ``512m``, ``513b``: as short as it can be exactly."""
    for suffix, factor in (("m", MIB), ("k", KIB)):
        if count % factor == 0:
            return f"{count // factor}{suffix}"
    return f"{count}b"


@dataclass(frozen=True, slots=True)
class BlockCell:
    """One combination of the block benchmark.

    :param disks: of the guest, where its driver loads them; each on a node of its own.
    :param queues: of each disk.
    :param iothreads: of all disks together: one disk's queues are dealt out to several where there
        are more iothreads than disks (``iothread-vq-mapping``, QEMU 9 and later).
    """

    node: NodeKind
    rw: IoPattern
    block_size_bytes: Annotated[
        int, Interval(ge=LEAST_BLOCK_BYTES, le=MAX_BLOCK_BYTES), Unit.BYTES
    ] = 4 * KIB
    iodepth: Annotated[int, Interval(ge=1, le=MAX_IODEPTH)] = 1
    numjobs: Annotated[int, Interval(ge=1, le=MAX_JOBS)] = 1
    disks: Annotated[int, Interval(ge=1, le=MAX_DISKS)] = 1
    queues: Annotated[int, Interval(ge=1, le=MAX_QUEUES)] = 1
    iothreads: Annotated[int, Interval(ge=1, le=MAX_IOTHREADS)] = 1

    @property
    def name(self) -> str:
        """``null-co-randread-4k-64-1``, and what it has more of: ``-2disks-4iothreads``."""
        size = _size(self.block_size_bytes)
        more = "".join(
            f"-{count}{what}"
            for count, what in (
                (self.disks, "disks"),
                (self.queues, "queues"),
                (self.iothreads, "iothreads"),
            )
            if count > 1
        )
        return f"{self.node}-{self.rw}-{size}-{self.iodepth}-{self.numjobs}{more}"


@dataclass(frozen=True, slots=True)
class BootCell:
    """One combination of the boot benchmark.

    :param acpi: the machine has ACPI's tables and registers.
    :param bridges: PCI bridges.
    :param devices: PCI devices with a memory of their own (ivshmem-plain), as many on each bus as
        can be: wherever firmware or kernel maps one, KVM's memory regions change.
    :param remaps: how often the project's guest unmaps and maps the memory of a device before it
        begins, one device after the other: two updates of KVM's memory regions each.
    """

    guest: BootGuest = BootGuest.PROJECT
    firmware: Firmware = Firmware.SEABIOS
    accelerator: Accelerator = Accelerator.KVM
    vcpus: Vcpus = 1
    memory_bytes: MemoryBytes = 512 * MIB
    acpi: bool = True
    bridges: Annotated[int, Interval(ge=0, le=MAX_BRIDGES)] = 0
    devices: Annotated[int, Interval(ge=0, le=MAX_DEVICES)] = 0
    remaps: Annotated[int, Interval(ge=0, le=MAX_REMAPS)] = 0

    @property
    def name(self) -> str:
        """``linux-ovmf-kvm-2-512m``, and what it has more: ``-noacpi-2bridges-8devices``."""
        memory = _size(self.memory_bytes)
        more = "" if self.acpi else "-noacpi"
        counts = (self.bridges, "bridge"), (self.devices, "device"), (self.remaps, "remap")
        for count, what in counts:
            more += f"-{count}{what}{'' if count == 1 else 's'}" if count else ""
        return f"{self.guest}-{self.firmware}-{self.accelerator}-{self.vcpus}-{memory}{more}"


@dataclass(frozen=True, slots=True)
class SrcuCell:
    """One combination of the benchmark of updates of memory maps."""

    vcpus: Annotated[int, Interval(ge=1, le=MAX_SPINNING)] = 1

    @property
    def name(self) -> str:
        """``2-vcpus``."""
        return f"{self.vcpus}-vcpu{'' if self.vcpus == 1 else 's'}"
