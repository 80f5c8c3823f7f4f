"""What host diagnostics examine: a host's kernel, KVM, limits, network and programs. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from vmtune.model.host.srcu_cost import SrcuCost
from vmtune.model.versions import Version

T = TypeVar("T", bool, int, str)


@dataclass(frozen=True, slots=True)
class Seen(Generic[T]):
    """A value, and the place that it was read from."""

    value: T
    where: str


@dataclass(frozen=True, slots=True)
class SkippedCheck:
    """What could not be examined, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class KvmSeen:
    """/dev/kvm.

    :param why_not: why this process cannot use it; empty if it can.
    :param dirty_ring_bytes: the largest ring of a vCPU; 0 where KVM has none, None if the query
        failed.
    :param ring_reset_ends_early: the kernel empties rings in part when a signal is pending; None
        where that could not be tried.
    """

    present: bool
    why_not: str = ""
    dirty_ring_bytes: int | None = None
    ring_reset_ends_early: bool | None = None
    where: str = "/dev/kvm"


@dataclass(frozen=True, slots=True)
class QemuSeen:
    """A QEMU process.

    :param memory_bytes: its guest's memory; None where its command line does not say.
    :param memlock_bytes: soft RLIMIT_MEMLOCK; None where it cannot be seen.
    :param may_lock: it has CAP_IPC_LOCK, so that the limit does not bind it.
    :param root: it runs as root.
    :param dirty_ring_entries: of each vCPU; 0 for bitmap tracking, None where it cannot be seen.
    :param aborts_on_short_reset: it aborts where the kernel empties a ring in part; None where
        its program cannot be read.
    :param label: AppArmor's profile with its mode, or SELinux's context; None where it cannot be
        seen.
    """

    pid: int
    vcpus: int
    maps: int | None = None
    memory_bytes: int | None = None
    memlock_bytes: int | None = None
    may_lock: bool | None = None
    root: bool = False
    dirty_ring_entries: int | None = None
    aborts_on_short_reset: bool | None = None
    label: str | None = None

    @property
    def unconfined(self) -> bool:
        """Its label is that of a process that may do all that its user may."""
        label = self.label or "unseen"
        return (
            label == "unconfined" or label.endswith("(complain)") or ":unconfined_t:" in f"{label}:"
        )


@dataclass(frozen=True, slots=True)
class NicSeen:
    """A network card that is up.

    :param speed_mbit: None where it does not say (virtual cards).
    :param gathers: scatter-gather is on; None where it cannot be asked.
    """

    name: str
    speed_mbit: int | None = None
    gathers: bool | None = None


@dataclass(frozen=True, slots=True)
class ProfileNeeds:
    """What the assigned profiles want of a host.

    :param profile: the one that wants the most channels; empty where none wants any.
    """

    channels: int = 0
    profile: str = ""
    zero_copy: bool = False


@dataclass(frozen=True, slots=True)
class Examined:
    """All that was seen of a host. None and absent is: it could not be seen, and *skipped_checks*
    says why.

    :param srcu: the parameters of the module srcutree.
    :param srcu_cost: what updates of a memory map cost; None where it was not measured.
    :param userfaultfd_device: how /dev/userfaultfd is: ``missing``, or its mode such as 0600.
    :param confines: what the kernel confines processes by, AppArmor or SELinux.
    :param can_raise_memlock: libvirt's daemon, or what starts QEMU, has CAP_SYS_RESOURCE.
    :param programs: whether each program that vmtune runs was found.
    """

    hostname: str = ""
    user: str = ""
    kernel: Seen[str] | None = None
    srcu: Mapping[str, str] = field(default_factory=dict)
    srcu_cost: SrcuCost | None = None
    max_map_count: Seen[int] | None = None
    optmem_max_bytes: Seen[int] | None = None
    unprivileged_userfaultfd: Seen[int] | None = None
    userfaultfd_device: str = ""
    userfaultfd_for_all: bool = False
    kvm: KvmSeen | None = None
    cpus: Seen[int] | None = None
    qemus: tuple[QemuSeen, ...] = ()
    nics: tuple[NicSeen, ...] = ()
    confines: Seen[str] | None = None
    can_raise_memlock: Seen[bool] | None = None
    qemu_versions: tuple[tuple[str, Version], ...] = ()
    libvirt: Seen[str] | None = None
    programs: Mapping[str, bool] = field(default_factory=dict)
    skipped_checks: tuple[SkippedCheck, ...] = ()
