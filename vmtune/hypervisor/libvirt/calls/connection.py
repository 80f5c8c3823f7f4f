"""The calls of libvirt about a host and what it has."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from vmtune.hypervisor.libvirt.calls.base import Calls
from vmtune.hypervisor.libvirt.calls.domain import Domain
from vmtune.hypervisor.libvirt.calls.pool import Pool
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.model.versions import Version

EventCallback = Callable[[str, UUID, tuple[Any, ...]], None]  # any: as each event has it
"""Called in libvirt's event thread with the event's name, the VM, and what it says."""

_ACTIVE_POOLS = "VIR_CONNECT_LIST_STORAGE_POOLS_ACTIVE"
_INACTIVE_POOLS = "VIR_CONNECT_LIST_STORAGE_POOLS_INACTIVE"
_EVENTS = (
    "VIR_DOMAIN_EVENT_ID_LIFECYCLE",
    "VIR_DOMAIN_EVENT_ID_MIGRATION_ITERATION",
    "VIR_DOMAIN_EVENT_ID_JOB_COMPLETED",
)
QEMU_MIGRATION, QEMU_JOB = "MIGRATION", "JOB_STATUS_CHANGE"
"""QEMU's own events, which libvirt passes on."""


class Connection(Calls):
    """A connection to a libvirt daemon."""

    def domain(self, vm: UUID) -> Domain:
        """A VM.

        :raise NotFound: the host does not have it.
        """
        with self.errors():
            return Domain(self, self._raw.lookupByUUIDString(str(vm)))

    def domains(self) -> list[Domain]:
        """The VMs, running or not."""
        with self.errors():
            return [Domain(self, raw) for raw in self._raw.listAllDomains(0)]

    def pool_at(self, folder: str) -> Pool | None:
        """The active storage pool that is this folder; None where there is none."""
        try:
            with self.errors():
                raw = self._raw.storagePoolLookupByTargetPath(folder)
                if not raw.isActive():
                    return None
        except LibvirtRefused:
            return None
        return Pool(self, raw)

    def pool_named(self, name: str) -> Pool | None:
        """The active storage pool of that name; None where there is none."""
        try:
            with self.errors():
                raw = self._raw.storagePoolLookupByName(name)
                return Pool(self, raw) if raw.isActive() else None
        except LibvirtRefused:
            return None

    def create_pool(self, xml: str) -> Pool:
        """A storage pool that is there until it is deactivated."""
        with self.errors():
            return Pool(self, self._raw.storagePoolCreateXML(xml, 0))

    def active_pools(self) -> list[Pool]:
        """The active storage pools."""
        return self.pools_named("")

    def pools_named(self, prefix: str) -> list[Pool]:
        """The active storage pools whose names begin so."""
        return [pool for pool in self._pools(_ACTIVE_POOLS) if pool.name.startswith(prefix)]

    def inactive_pools(self) -> list[Pool]:
        """The storage pools that are defined and not active."""
        return self._pools(_INACTIVE_POOLS)

    def _pools(self, kind: str) -> list[Pool]:
        with self.errors():
            found = self._raw.listAllStoragePools(self.library.flags(kind))
            return [Pool(self, raw) for raw in found]

    def define(self, xml: str) -> None:
        """Store a persistent configuration."""
        with self.errors():
            self._raw.defineXML(xml)

    def hostname(self) -> str:
        """The host's name as its daemon knows it."""
        with self.errors():
            return str(self._raw.getHostname())

    def libvirt_version(self) -> Version:
        """The daemon's."""
        with self.errors():
            return Version.from_libvirt(self._raw.getLibVersion())

    def qemu_version(self) -> Version:
        """The host's default emulator's; QEMU packs its version as libvirt does."""
        with self.errors():
            return Version.from_libvirt(self._raw.getVersion())

    def capabilities(self) -> str:
        """The host's capabilities XML."""
        with self.errors():
            return str(self._raw.getCapabilities())

    def compare_cpu(self, kind: str, machine: str, cpu_xml: str) -> int:
        """How a CPU compares with what this host can give (VIR_CPU_COMPARE)."""
        with self.errors():
            return int(self._raw.compareHypervisorCPU(None, None, machine, kind, cpu_xml, 0))

    def free_pages(self, size_kib: int) -> int:
        """Free pages of a size, on the whole host."""
        with self.errors():
            cells = self._raw.getFreePages([size_kib], -1, 1, 0)
        return sum(int(count) for cell in cells.values() for count in cell.values())

    def domain_capabilities(self, kind: str, machine: str | None = None) -> str:
        """What VMs of type *kind* (``kvm``) can have here, of any machine type or of one.

        :raise CommandRefused: the host cannot run such VMs.
        """
        with self.errors():
            return str(self._raw.getDomainCapabilities(None, None, machine, kind, 0))

    def cpus_and_memory(self) -> tuple[int, int]:
        """Logical CPUs, and memory in bytes."""
        with self.errors():
            info = self._raw.getInfo()
        return int(info[2]), int(info[1]) << 20

    def idle_cpu_s(self) -> float | None:
        """For how long its CPUs together had nothing to do; None if libvirt does not know."""
        try:
            with self.errors():
                found: Mapping[str, int] = self._raw.getCPUStats(-1, 0)  # of all CPUs together
        except LibvirtRefused:
            return None
        if "idle" not in found:
            return None
        return (int(found["idle"]) + int(found.get("iowait", 0))) / 1e9

    def available_memory(self) -> int | None:
        """Bytes that are free, or that the host's caches would give back; None if libvirt does not
        know."""
        try:
            with self.errors():
                found: Mapping[str, int] = self._raw.getMemoryStats(-1, 0)
        except LibvirtRefused:
            return None
        if "free" not in found:
            return None
        return sum(int(found.get(name, 0)) for name in ("free", "buffers", "cached")) << 10

    def watch(self, on_event: EventCallback, on_close: Callable[[str], None]) -> None:
        """Receive events until the connection is closed, in libvirt's event thread."""

        def listener(name: str) -> Callable[..., None]:
            def notify(_: object, raw: Any, *details: Any) -> None:  # any: as the event has it
                on_event(name, UUID(raw.UUIDString()), details[:-1])

            return notify

        with self.errors():
            self._raw.registerCloseCallback(lambda *_: on_close("the daemon went away"), None)
            for name in _EVENTS:
                number = self.library.constant(name)
                self._raw.domainEventRegisterAny(None, number, listener(name), None)
        for name in (QEMU_MIGRATION, QEMU_JOB):
            with contextlib.suppress(LibvirtRefused), self.errors():
                self.library.qemu.qemuMonitorEventRegister(
                    self._raw, None, name, listener(name), None
                )

    def close(self) -> None:
        """Let go of it. Calls that are under way end with an error."""
        with contextlib.suppress(self.library.error):
            self._raw.unregisterCloseCallback()
        with contextlib.suppress(self.library.error):
            self._raw.close()
