"""Stand-ins of libvirt-python's connections and of the daemon behind them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from uuid import UUID

from vmtune.errors import (
    HostUnreachable,
)
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.library import Library

VM = UUID("09c0f619-80b8-5779-af9e-2b2ab883721e")


class LibvirtError(Exception):
    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.get_error_code = lambda: number


class FakeRaw:
    """A connection of libvirt-python's, as far as the link uses it."""

    def __init__(self, domain: object = None) -> None:
        self._domain = domain
        self.alive = True
        self.by_proxy = False
        self.looked_up = 0
        self.was_closed = threading.Event()
        self.on_close: Callable[..., None] = lambda *_: None

    def isAlive(self) -> int:  # noqa: N802 - libvirt's name
        return int(self.alive or self.by_proxy)

    def registerCloseCallback(self, call: Callable[..., None], _: object) -> None:  # noqa: N802
        self.on_close = call

    def unregisterCloseCallback(self) -> None:  # noqa: N802
        pass

    def domainEventRegisterAny(self, *_: object) -> None:  # noqa: N802
        pass

    def lookupByUUIDString(self, _: str) -> object:  # noqa: N802
        self.looked_up += 1
        return self._domain

    def close(self) -> None:
        self.was_closed.set()

    def getHostname(self) -> str:  # noqa: N802
        if not self.alive:
            raise LibvirtError(38, "Cannot recv data: Connection reset by peer")
        return "a"


class Host:
    """Hands out connections to a daemon that can be ended."""

    def __init__(self) -> None:
        self.opened: list[FakeRaw] = []
        self.running = True
        self.domain: object = None
        names = ("LIFECYCLE", "MIGRATION_ITERATION", "JOB_COMPLETED")
        constants = {f"VIR_DOMAIN_EVENT_ID_{name}": 0 for name in names}
        libvirt = SimpleNamespace(libvirtError=LibvirtError, **constants)
        qemu = SimpleNamespace(qemuMonitorEventRegister=lambda *_: 0)
        self.library = Library(libvirt, qemu)  # type: ignore[arg-type]  # stands for modules

    def open(self, uri: str) -> Connection:
        if not self.running:
            raise HostUnreachable(f"no connection to {uri}")
        self.opened.append(FakeRaw(self.domain))
        return Connection(self.library, uri, self.opened[-1])

    def end_connection(self) -> None:
        self.opened[-1].alive = False

    def end_behind_proxy(self) -> None:
        """virtqemud ends; virtproxyd, to which the connection is, does not."""
        self.opened[-1].by_proxy = True
        self.end_connection()
