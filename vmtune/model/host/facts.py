"""What was probed of a host, of a VM and of its QEMU: the ground on which a plan stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from vmtune.model.host.hardware import Hardware
from vmtune.model.host.virtio_queues import VirtioQueue
from vmtune.model.tunables.tunable import Value
from vmtune.model.versions import Version


class Connection(StrEnum):
    """How a host's QEMUs are reached."""

    LIBVIRT = "libvirt"
    QMP = "qmp"


class VmState(StrEnum):
    """What a VM is doing."""

    RUNNING = "running"
    PAUSED = "paused"
    INCOMING = "incoming"
    SHUT_OFF = "shut off"
    MIGRATED = "migrated away"
    OTHER = "other"
    UNKNOWN = "unknown"
    """Its host does not answer; no driver says so."""


class Postcopy(StrEnum):
    """libvirt's reason of a domain's state, as far as it is about post-copy."""

    NONE = "none"
    ACTIVE = "post-copy"
    FAILED = "post-copy failed"


@dataclass(frozen=True, slots=True)
class VmSummary:
    """A VM as a host lists it.

    :param postcopy: what libvirt says of it; none without libvirt.
    """

    uuid: UUID
    name: str
    state: VmState
    postcopy: Postcopy = Postcopy.NONE


@dataclass(frozen=True, slots=True)
class Reading:
    """What one tunable is set to right now.

    :param value: the value, or None where it cannot be read or parts differ.
    :param parts: value by owner (``iothread1``, a disk) where a VM has several.
    :param why_unknown: why there is no value; empty where there is one.
    """

    value: Value | None
    parts: Mapping[str, Value] = field(default_factory=dict)
    why_unknown: str = ""

    @classmethod
    def of_parts(cls, parts: Mapping[str, Value], nothing: str) -> Reading:
        """One value where all parts agree; *nothing* says why where there are no parts."""
        distinct = set(parts.values())
        if len(distinct) == 1:
            return cls(distinct.pop(), parts)
        why = "its parts differ" if parts else nothing
        return cls(None, parts, why)


@dataclass(frozen=True, slots=True)
class MemoryMaps:
    """The memory maps of a QEMU process, as /proc/PID/maps lists them.

    :param stacks: stacks of coroutines among them, in use and kept; each takes two maps.
    :param stacks_per_coroutine: two in a QEMU that was built with SafeStack.
    """

    total: int
    stacks: int
    stacks_per_coroutine: int = 1


@dataclass(frozen=True, slots=True)
class HostFacts:
    """A host as vmtune sees it.

    :param peer_uri: how other hosts reach this one's libvirt; empty where unknown.
    :param migration_address: address that QEMU listens on for a migration, direct mode.
    :param memory_bytes: all of the host's memory; None where it cannot be seen.
    :param memory_available_bytes: what could be given away: free, or a cache's; likewise.
    :param sysctls: current values of the host's tunables and of what preflight checks.
    :param no_certificates_in: the folder in which its libvirt looks for certificates for
        migrations, if there are none; empty where there are, or where it cannot be seen.
    :param can_lock_beyond_limits: whether the daemon that starts QEMU may raise its
        locked-memory limit (CAP_SYS_RESOURCE); None where it cannot be seen.
    :param cpu_idle_s: for how long its CPUs together had nothing to do, since it was booted; None
        where that cannot be seen.
    :param confined_by: what libvirt confines its QEMUs by, unless a VM's own XML says otherwise:
        ``apparmor`` or ``selinux``; empty for neither, None where it cannot be seen.
    :param ring_reset_ends_early: the kernel empties dirty rings in part when a signal is pending
        (:mod:`vmtune.model.host.ring_reset`); None where that is unknown.
    """

    connection: Connection
    hostname: str
    uuid: str
    qemu: Version | None
    libvirt: Version | None
    peer_uri: str = ""
    migration_address: str = ""
    kvm: bool | None = None
    cpus: int | None = None
    memory_bytes: int | None = None
    kernel: str = ""
    sysctls: Mapping[str, int] = field(default_factory=dict)
    can_lock_beyond_limits: bool | None = None
    local: bool = True
    memory_available_bytes: int | None = None
    ring_reset_ends_early: bool | None = None
    no_certificates_in: str = ""
    confined_by: str | None = None
    cpu_idle_s: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class VmFacts:
    """A running VM and its QEMU, as probed just now.

    :param capabilities: migration capabilities that this QEMU has, on or off.
    :param parameters: migration parameters, by QEMU's names.
    :param compression_methods: what multifd-compression accepts in this build.
    :param iothreads: ids of its iothreads; *main_loop* is whether a main-loop object exists.
    :param readings: every tunable that was read, by vmtune's name.
    :param boot_readings: what the persistent configuration says, for the boot route.
    :param migrating: a migration is active, incoming or outgoing.
    :param locked_memory_limit_bytes: QEMU's RLIMIT_MEMLOCK; None where it cannot be seen.
    :param may_lock_memory: QEMU has CAP_IPC_LOCK, so that limit does not bind it.
    :param pinned_by_others_bytes: memory that the other QEMUs of its user have pinned, which the
        kernel counts against the same limit; None where it cannot be seen.
    :param blocked_reasons: why QEMU says that it cannot be migrated at all.
    :param maps: its process's memory maps; None where they cannot be seen.
    :param stack_bytes: what one of its coroutines' stacks has of memory; None where it has none,
        or they cannot be seen.
    :param pack_offers: the packs' tunables that this QEMU has.
    :param hardware: what it needs of its host; None without libvirt.
    :param objects: ids of QEMU's objects; None where they were not asked for.
    :param postcopy_with_multifd: whether QEMU takes the two together; None where it was not asked
        or did not say.
    :param measuring_dirty_rate: somebody measures its dirty rate right now; looked at only where
        it matters, as is *vcpu_dirty_bytes_per_s*.
    :param vcpu_dirty_bytes_per_s: the fastest vCPU's rate, as last measured by a dirty ring; None
        where it was not.
    :param manager: the program that manages it (:mod:`vmtune.model.host.managers`); empty if none
        that is known does.
    :param virtio_queues: of some of its devices; looked at only where it matters.
    :param aborts_on_short_reset: this QEMU aborts where the kernel empties a ring in part; None
        where its program cannot be read.
    """

    uuid: UUID
    name: str
    state: VmState
    qemu: Version
    machine: str
    kvm: bool
    memory_bytes: int
    vcpus: int
    capabilities: Mapping[str, bool]
    parameters: Mapping[str, Value]
    compression_methods: frozenset[str]
    iothreads: tuple[str, ...] = ()
    main_loop: bool = False
    virtio_disks: tuple[str, ...] = ()
    readings: Mapping[str, Reading] = field(default_factory=dict)
    boot_readings: Mapping[str, Reading] = field(default_factory=dict)
    persistent: bool = True
    migrating: bool = False
    locked_memory_limit_bytes: int | None = None
    may_lock_memory: bool | None = None
    pinned_by_others_bytes: int | None = None
    blocked_reasons: tuple[str, ...] = ()
    pid: int | None = None
    measuring_dirty_rate: bool = False
    postcopy_with_multifd: bool | None = None
    objects: frozenset[str] | None = None
    hardware: Hardware | None = None
    pack_offers: frozenset[str] = frozenset()
    maps: MemoryMaps | None = None
    stack_bytes: int | None = None
    vcpu_dirty_bytes_per_s: int | None = None
    aborts_on_short_reset: bool | None = None
    manager: str = ""
    virtio_queues: tuple[VirtioQueue, ...] = ()

    @property
    def dirty_ring_size_entries(self) -> int | None:
        """Entries of its dirty ring, 0 for bitmap tracking, None where unknown."""
        value = self.readings.get("dirty_ring_size_entries", Reading(None)).value
        return value if isinstance(value, int) else None
