"""What a VM needs of a host to run there, and what a host offers of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vmtune.model.host.disks import Disk, DiskAtHost


@dataclass(frozen=True, slots=True)
class Hardware:
    """What a domain's XML says of a VM, as far as it can stop a migration.

    :param host_devices: devices of the host that the guest has by VFIO, by their addresses.
    :param tpm: the backend of its TPM (``emulator``, ``passthrough``); empty for none.
    :param hugepage_bytes: the size of the huge pages that back its memory; 0 for none, or where
        the XML leaves it to the host.
    :param cpu_mode: of its configuration: ``host-model``, ``host-passthrough``, ``custom``, ....
    :param cpu_xml: its running CPU, as libvirt has it; empty where it names none.
    :param snapshots: how many libvirt keeps of it.
    :param virtiofs: the guest's names of folders that a virtiofsd of libvirt's shares with it.
    :param pinned_cpus: the host's CPUs that its threads may run on, of all that are pinned.
    """

    host_devices: tuple[str, ...] = ()
    tpm: str = ""
    hugepage_bytes: int = 0
    cpu_mode: str = ""
    cpu_xml: str = ""
    disks: tuple[Disk, ...] = ()
    snapshots: int = 0
    virtiofs: tuple[str, ...] = ()
    pinned_cpus: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Offer:
    """What a host offers of what a VM needs. None is not known.

    :param machine: it has the VM's machine type.
    :param cpu: it can give the guest its CPU.
    :param tpms: the backends of TPMs.
    :param free_hugepages_bytes: in huge pages of the VM's size.
    :param disks: what is at the paths of the VM's disks, by their targets.
    """

    machine: bool | None = None
    cpu: bool | None = None
    tpms: frozenset[str] | None = None
    free_hugepages_bytes: int | None = None
    disks: Mapping[str, DiskAtHost] = field(default_factory=dict)


UNKNOWN_OFFER = Offer()
