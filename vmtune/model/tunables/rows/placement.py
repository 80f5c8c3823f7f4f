"""Rows of where on the host a VM's memory and threads are placed from its start on.

Words: libvirt's docs/formatdomain.rst (cputune, numatune, memoryBacking).
"""

from __future__ import annotations

from vmtune.model.tunables.cpu_lists import ALL
from vmtune.model.tunables.rows.devices import LEFT_TO_QEMU
from vmtune.model.tunables.texts import TextForm
from vmtune.model.tunables.tunable import Kind, LibvirtKind, LibvirtName, Route, Side, Tunable


def _xml(name: str) -> LibvirtName:
    return LibvirtName(LibvirtKind.XML, name)


PLACEMENT = (
    Tunable(
        "huge_pages", "Huge pages",
        "The pages of the host that back the guest's memory; default are huge pages of the host's "
        "usual size. The VM does not start where too few are free.",
        Kind.CHOICE, Route.BOOT, Side.BOTH, default="none",
        choices=("none", LEFT_TO_QEMU, "2M", "1G"),
        libvirt=_xml("memoryBacking/hugepages"),
    ),
    Tunable(
        "vcpu_cpus", "CPUs of the vCPUs",
        "The host's CPUs that the vCPUs run on: one set for all, or one for each vCPU with / "
        "between.",
        Kind.TEXT, Route.BOOT, Side.BOTH, default=ALL, form=TextForm.SETS,
        libvirt=_xml("cputune/vcpupin@cpuset"),
    ),
    Tunable(
        "emulator_cpus", "CPUs of the emulator",
        "The host's CPUs that QEMU's other threads run on. Those of a migration are among them: "
        "libvirt has no pinning of their own.",
        Kind.TEXT, Route.BOOT, Side.BOTH, default=ALL, form=TextForm.SET,
        libvirt=_xml("cputune/emulatorpin@cpuset"),
    ),
    Tunable(
        "iothread_cpus", "CPUs of the iothreads",
        "The host's CPUs that the iothreads run on: one set for all, or one for each iothread with "
        "/ between.",
        Kind.TEXT, Route.BOOT, Side.BOTH, default=ALL, form=TextForm.SETS,
        libvirt=_xml("cputune/iothreadpin@cpuset"),
    ),
    Tunable(
        "numa_nodes", "NUMA nodes of the memory",
        "The host's NUMA nodes that the guest's memory comes from.",
        Kind.TEXT, Route.BOOT, Side.BOTH, default=ALL, form=TextForm.SET,
        libvirt=_xml("numatune/memory@nodeset"),
    ),
    Tunable(
        "numa_mode", "Placement on NUMA nodes",
        "How strictly the memory comes from numa_nodes: strict fails where they are full, "
        "preferred and interleave go elsewhere, restrictive leaves it to the cgroup. libvirt "
        "takes strict where the configuration says nothing.",
        Kind.CHOICE, Route.BOOT, Side.BOTH,
        choices=("strict", "preferred", "interleave", "restrictive"),
        libvirt=_xml("numatune/memory@mode"),
    ),
)  # fmt: skip
