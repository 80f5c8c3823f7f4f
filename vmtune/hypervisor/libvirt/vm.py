"""One VM's facts: what libvirt says of it, and what its QEMU does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.calls.domain import Domain, VmStatus
from vmtune.hypervisor.libvirt.domain_xml import DomainXml, boot_readings, read_domain
from vmtune.hypervisor.libvirt.hardware import read_hardware
from vmtune.hypervisor.libvirt.host import LocalDaemon
from vmtune.hypervisor.linux.qemu_process import QemuProcess
from vmtune.model.host.facts import Reading, VmFacts, VmState
from vmtune.model.host.hardware import Hardware
from vmtune.model.migration.record import Totals
from vmtune.model.versions import Version

_NOT_SEEN = "libvirt holds the VM's XML back until the migration has ended"
RING = "dirty_ring_size_entries"


@dataclass(frozen=True, slots=True)
class VmRecord:
    """What libvirt says of a VM.

    :param run_id: changes with each start.
    :param live: the XML of the running VM, or the configuration where it does not run.
    :param boot: the persistent configuration; None where it is transient.
    :param process: its QEMU, where it can be seen.
    """

    status: VmStatus
    run_id: int
    live: DomainXml
    boot: DomainXml | None
    process: QemuProcess | None
    host_qemu: Version
    hardware: Hardware | None = None


def look_up(connection: Connection, vm: UUID, daemon: LocalDaemon | None) -> VmRecord:
    """Ask libvirt. Blocks, and waits for what the VM is at.

    :raise NotFound: the host does not have it.
    """
    domain = connection.domain(vm)
    status = domain.status()
    process = daemon.qemu(status.name, str(vm)) if daemon and domain.is_active() else None
    boot: DomainXml | None = None
    hardware: Hardware | None = None
    if status.arriving:
        live = _without_xml(domain, process)
    else:
        text, configured = domain.xml(), None
        live = read_domain(text)
        if domain.is_persistent():
            configured = domain.xml("VIR_DOMAIN_XML_INACTIVE")
            boot = read_domain(configured)
        hardware = read_hardware(text, configured, domain.snapshots())
    host_qemu = connection.qemu_version()
    return VmRecord(status, domain.run_id(), live, boot, process, host_qemu, hardware)


def _without_xml(domain: Domain, process: QemuProcess | None) -> DomainXml:
    """What is known of a VM whose XML libvirt holds back: with its process, the most of it."""
    memory_bytes, vcpus = domain.memory_and_vcpus()
    machines = (process.option("machine") if process else None) or [{}]
    accelerators = (process.option("accel") if process else None) or [{}]
    ring = process.dirty_ring_size_entries() if process else None
    return DomainXml(
        machine=machines[0].get("", ""),
        kvm=accelerators[0].get("") == "kvm",
        memory_bytes=memory_bytes,
        vcpus=vcpus,
        iothreads=(),
        main_loop=False,
        disks=(),
        dirty_ring_size_entries=ring,
    )


def facts_by_xml(record: VmRecord) -> VmFacts:
    """The facts of a VM whose QEMU is not there, or cannot be asked.

    Where there is none, the version is the host's, and the readings are those with which it
    would start.
    """
    live = record.live
    boot = boot_readings(record.boot) if record.boot else {}
    if record.status.state in (VmState.SHUT_OFF, VmState.MIGRATED):
        readings = dict(boot)
    else:
        unseen = {RING: Reading(None, why_unknown=_NOT_SEEN)}
        readings = {**with_ring(unseen, live), **live.settings}
    return VmFacts(
        uuid=record.status.uuid,
        name=record.status.name,
        state=record.status.state,
        qemu=record.host_qemu,
        machine=live.machine,
        kvm=live.kvm,
        memory_bytes=live.memory_bytes,
        vcpus=live.vcpus,
        capabilities={},
        parameters={},
        compression_methods=frozenset(),
        iothreads=live.iothreads,
        main_loop=live.main_loop,
        virtio_disks=tuple(disk.alias or disk.target for disk in live.disks),
        readings=readings,
        boot_readings=boot,
        persistent=record.boot is not None,
        migrating=record.status.arriving,
        pid=record.process.pid if record.process else None,
        manager=live.manager,
    )


def add_libvirt(facts: VmFacts, record: VmRecord) -> VmFacts:
    """Facts that a monitor gave, with what only libvirt knows."""
    readings = {**with_ring(facts.readings, record.live), **record.live.settings}
    boot = boot_readings(record.boot, record.live, readings) if record.boot else {}
    return replace(
        facts,
        state=record.status.state,
        readings=readings,
        boot_readings=boot,
        persistent=record.boot is not None,
        hardware=record.hardware,
        manager=record.live.manager,
    )


def with_ring(readings: Mapping[str, Reading], live: DomainXml) -> dict[str, Reading]:
    """*readings* with the dirty ring's size from the live XML, where QEMU's command line,
    which says it best, cannot be seen."""
    if RING not in readings or readings[RING].value is not None:
        return dict(readings)
    if live.dirty_ring_size_entries is None:
        return dict(readings)
    return {**readings, RING: Reading(live.dirty_ring_size_entries)}


def read_totals(job: dict[str, int]) -> Totals | None:
    """libvirt's statistics of a completed migration; None of any other job, and of none."""
    if job.get("operation") not in _MIGRATIONS or "time_elapsed" not in job:
        return None
    return Totals(
        total_time_ms=job["time_elapsed"],
        downtime_ms=job.get("downtime", 0),
        setup_time_ms=job.get("setup_time"),
        transferred_bytes=job.get("memory_processed", 0),
        iterations=job.get("memory_iteration", 0),
        normal_bytes=job.get("memory_normal_bytes"),
    )


_MIGRATIONS = (4, 5)
"""VIR_DOMAIN_JOB_OPERATION_MIGRATION_IN and _OUT."""
