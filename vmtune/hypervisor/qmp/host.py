"""A folder of QMP sockets: its QEMUs, their monitors and events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from vmtune.hypervisor.event_hub import EventHub
from vmtune.hypervisor.guard import OPEN, Guard
from vmtune.hypervisor.protocol import DriverEvent, EventKind
from vmtune.hypervisor.qmp.folder import QemuFolder, sockets_in
from vmtune.hypervisor.qmp.migration import DirectMigration
from vmtune.hypervisor.qmp.monitor import QmpMonitor
from vmtune.hypervisor.qmp.qemu import Link, OnEvent, Qemu
from vmtune.model.host.facts import VmState
from vmtune.model.migration.prior import Prior
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.registry import TunableRegistry


class QmpHost:
    """What all calls of a driver share.

    :param uri: ``qmp+unix:///FOLDER``.
    :param migration_address: where its QEMUs listen for a migration; empty for a unix
        socket in the folder, which a QEMU on the same machine reaches.
    :param more_commands: see :func:`vmtune.hypervisor.qemu.allowlist.check`.
    :param guard: lets through what changes something.
    :param tunables: what it reads and sets, packs included.
    """

    def __init__(
        self,
        uri: str,
        migration_address: str = "127.0.0.1",
        greeting_timeout_s: float = 2.0,
        more_commands: Collection[str] = (),
        guard: Guard = OPEN,
        tunables: TunableRegistry = BUILT_IN,
    ) -> None:
        self._uri = uri
        self.tunables = tunables
        self._guard = guard
        self._folder = QemuFolder(
            Path(urlsplit(uri).path),
            self._sockets,
            self._link,
            self._heard,
            self._lost,
            self._gone,
            lambda: self.tunables,
        )
        self._migration_address = migration_address
        self._greeting_timeout_s = greeting_timeout_s
        self._more_commands = more_commands
        self._hub = EventHub()
        self._prior: dict[UUID, Prior] = {}
        self._migrations: set[DirectMigration] = set()
        self._switching: dict[UUID, asyncio.Task[None]] = {}
        self._aborted: set[UUID] = set()  # whose migration QEMU was asked to cancel

    @property
    def uri(self) -> str:
        """The folder, as given."""
        return self._uri

    def daemon_lost_since(self, moment: float) -> bool:
        """There is none."""
        return False

    def events(self) -> AsyncGenerator[DriverEvent, None]:
        """What happens from now on."""
        return self._hub.events()

    def _sockets(self) -> list[Path]:
        return sockets_in(self._folder.path)

    def _link(self, path: Path, on_event: OnEvent, on_lost: Callable[[], None]) -> Link:
        return QmpMonitor(
            path,
            on_event,
            on_lost,
            self._greeting_timeout_s,
            more_commands=self._more_commands,
            guard=self._guard,
        )

    def _gone(self, qemu: Qemu) -> None:
        self._aborted.discard(qemu.uuid)
        self._prior.pop(qemu.uuid, None)

    def _heard(self, qemu: Qemu, name: str, data: Mapping[str, Any]) -> None:  # any JSON
        translated = _EVENTS.get(name)
        if translated is not None and qemu.known:
            kind, detail = translated
            self._hub.publish(DriverEvent(kind, qemu.uuid, detail(data)))

    def _lost(self, qemu: Qemu) -> None:
        if qemu.known:
            text = f"the connection to {qemu.path} was lost"
            self._hub.publish(DriverEvent(EventKind.CONNECTION_LOST, qemu.uuid, text))


_EVENTS: Mapping[str, tuple[EventKind, Callable[[Mapping[str, Any]], str]]] = {
    "MIGRATION": (EventKind.MIGRATION_STATUS, lambda data: str(data["status"])),
    "MIGRATION_PASS": (EventKind.MIGRATION_ITERATION, lambda data: str(data["pass"])),
    "STOP": (EventKind.VM_STATE, lambda data: VmState.PAUSED.value),
    "RESUME": (EventKind.VM_STATE, lambda data: VmState.RUNNING.value),
    "SHUTDOWN": (EventKind.VM_STATE, lambda data: VmState.SHUT_OFF.value),
}
