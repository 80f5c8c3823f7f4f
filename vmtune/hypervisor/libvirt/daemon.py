"""A libvirt daemon, and how each of its QEMUs is asked."""

from __future__ import annotations

from collections.abc import Callable, Collection
from uuid import UUID

from vmtune.hypervisor.guard import OPEN, Guard
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.calls.domain import VmStatus
from vmtune.hypervisor.libvirt.calls.opening import open_connection
from vmtune.hypervisor.libvirt.connection import Link
from vmtune.hypervisor.libvirt.host import (
    LocalDaemon,
    derive_peer_uri,
    find_local_daemon,
    read_host,
)
from vmtune.hypervisor.libvirt.migrating.leaving import Leaving
from vmtune.hypervisor.libvirt.migrating.migration import LibvirtMigration
from vmtune.hypervisor.libvirt.migrating.not_begun import NotBegun
from vmtune.hypervisor.libvirt.monitor import LibvirtMonitor
from vmtune.hypervisor.libvirt.vm import VmRecord, look_up
from vmtune.hypervisor.qemu.probe import QemuProbe
from vmtune.model.host.facts import HostFacts
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.registry import TunableRegistry


class LibvirtDaemon:
    """What all calls of a driver share: the connection, monitors and probes.

    :param uri: ``qemu:///system``, ``qemu+unix://...?socket=``, ``qemu+tcp://``,
        ``qemu+tls://``, ``qemu+ssh://``.
    :param peer_uri: how other hosts' daemons reach this one; empty to derive it from *uri*.
    :param more_commands: see :func:`vmtune.hypervisor.qemu.allowlist.check`.
    :param guard: lets through what changes something.
    :param tunables: what it reads and sets, packs included.
    """

    def __init__(
        self,
        uri: str,
        *,
        peer_uri: str = "",
        more_commands: Collection[str] = (),
        open_: Callable[[str], Connection] = open_connection,
        guard: Guard = OPEN,
        tunables: TunableRegistry = BUILT_IN,
    ) -> None:
        self._uri = uri
        self._tunables = tunables
        self._more_commands = more_commands
        self._open = open_
        self._guard = guard
        self._link = Link(uri, open_, guard)
        self._peer_uri = peer_uri or derive_peer_uri(uri)
        self._daemon: tuple[int, LocalDaemon | None] | None = None
        self._monitors: dict[UUID, LibvirtMonitor] = {}
        self._probes: dict[UUID, tuple[tuple[int, int], QemuProbe]] = {}
        self._migrations: dict[UUID, LibvirtMigration] = {}
        self._not_begun = NotBegun()
        self._leaving = Leaving()

    @property
    def uri(self) -> str:
        """The daemon's address, as given."""
        return self._uri

    @property
    def peer_uri(self) -> str:
        """How other hosts' daemons reach this one; empty where that is not known."""
        return self._peer_uri

    def daemon_lost_since(self, moment: float) -> bool:
        """Whether the connection was lost since *moment*."""
        return self._link.lost_at_s >= moment

    async def host_facts(self) -> HostFacts:
        """Probe the host. Sysctls, and whether memory can be locked beyond QEMU's limit, are
        known where the daemon runs on this machine."""
        return await self._link.ask(
            lambda connection: read_host(connection, self._local(), self._peer_uri)
        )

    def _local(self) -> LocalDaemon | None:
        """The daemon's process; looked for once for each connection. In a thread."""
        generation = self._link.generation
        if self._daemon is None or self._daemon[0] != generation:
            self._daemon = generation, find_local_daemon(self._uri)
        return self._daemon[1]

    async def _status(self, vm: UUID) -> tuple[VmStatus, int]:
        def call(connection: Connection) -> tuple[VmStatus, int]:
            domain = connection.domain(vm)
            return domain.status(), domain.run_id()

        return await self._link.ask(call)

    async def _look_up(self, vm: UUID) -> VmRecord:
        """What libvirt says of it. Its XML may have to wait for what the VM is at."""

        def call(connection: Connection) -> VmRecord:
            return look_up(connection, vm, self._local())

        return await self._monitor(vm).in_turn(lambda: self._link.ask(call, waits=True))

    def _monitor(self, vm: UUID) -> LibvirtMonitor:
        if vm not in self._monitors:
            self._monitors[vm] = LibvirtMonitor(self._link, vm, self._more_commands)
        return self._monitors[vm]

    def _known_probe(self, vm: UUID, run_id: int) -> QemuProbe | None:
        key, probe = self._probes.get(vm, (None, None))
        return probe if key == (self._link.generation, run_id) else None

    def _probe(self, vm: UUID, record: VmRecord) -> QemuProbe:
        """The VM's probe, which remembers what stays the same while QEMU lives."""
        probe = self._known_probe(vm, record.run_id)
        if probe is None:
            probe = QemuProbe(self._monitor(vm), self._tunables, record.process)
            self._probes[vm] = (self._link.generation, record.run_id), probe
        return probe
