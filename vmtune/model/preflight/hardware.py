"""The preflight of what a VM needs of its destination besides settings. Pure.

Sources: libvirt's qemuMigrationSrcIsAllowed (src/qemu/qemu_migration.c) and formatdomain.rst.
"""

from __future__ import annotations

from collections.abc import Iterator

from vmtune.model.findings.table import Finding
from vmtune.model.host.hardware import UNKNOWN_OFFER
from vmtune.model.plan.situation import Situation
from vmtune.model.tunables.cpu_lists import format_set


def check_hardware(situation: Situation) -> Iterator[Finding]:
    """What of the VM's own devices, memory, CPU and disks stands against a migration."""
    needs, destination = situation.vm.hardware, situation.destination
    if needs is None or destination is None:
        return
    offer = destination.offer or UNKNOWN_OFFER
    if needs.host_devices:
        yield Finding("vfio_device", evidence={"devices": ", ".join(needs.host_devices)})
    if needs.virtiofs:
        yield Finding("virtiofs_device", evidence={"folders": ", ".join(needs.virtiofs)})
    if needs.tpm == "passthrough":
        yield Finding("tpm_passthrough")
    elif needs.tpm and offer.tpms is not None and needs.tpm not in offer.tpms:
        yield Finding("tpm_not_offered", evidence={"backend": needs.tpm})
    memory, free = situation.vm.memory_bytes, offer.free_hugepages_bytes
    if needs.hugepage_bytes and free is not None and free < memory:
        evidence: dict[str, str | int] = {
            "page_bytes": needs.hugepage_bytes, "needed_bytes": memory, "free_bytes": free,
        }  # fmt: skip
        yield Finding("hugepages_missing", evidence=evidence)
    cpus = destination.host.cpus
    lacking = [cpu for cpu in needs.pinned_cpus if cpus is not None and cpu >= cpus]
    if cpus is not None and lacking:
        yield Finding("pinned_cpus_missing", evidence={"cpus": format_set(lacking), "has": cpus})
    if offer.machine is False:
        yield Finding("machine_not_offered", evidence={"machine": situation.vm.machine})
    if offer.cpu is False:
        yield Finding("cpu_not_offered")
    if needs.cpu_mode == "host-passthrough":
        yield Finding("cpu_host_passthrough")
    elif needs.cpu_mode == "host-model":
        yield Finding("cpu_host_model")
    if needs.snapshots:
        yield Finding("has_snapshots", evidence={"count": needs.snapshots})
