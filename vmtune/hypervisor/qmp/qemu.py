"""One QEMU behind a socket: its identity, and its cached state while it lives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol
from uuid import NAMESPACE_URL, UUID, uuid5

from vmtune.errors import HostUnreachable, MonitorBusy
from vmtune.hypervisor.linux.qemu_process import QemuProcess
from vmtune.hypervisor.qemu.monitor import Monitor
from vmtune.hypervisor.qemu.probe import QemuProbe
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.model.tunables.registry import TunableRegistry

_NO_UUID = UUID(int=0)


OnEvent = Callable[[str, Mapping[str, Any]], None]  # any JSON: an event's data
"""Receives each event's name and data."""


class Link(Monitor, Protocol):
    """A monitor that can be connected, lost and connected again."""

    @property
    def pid(self) -> int | None:
        """The local process behind it, where that is known."""

    @property
    def connected(self) -> bool:
        """Whether a command would go out without connecting first."""

    @property
    def connections(self) -> int:
        """How often it was connected: QEMU may be another process each time."""

    async def connect(self) -> None:
        """Connect unless connected.

        :raise MonitorBusy: another client holds the monitor.
        :raise HostUnreachable: there is no QEMU.
        """

    async def close(self) -> None:
        """Let go of the monitor, so that others may have it."""

    async def end_qemu(self) -> None:
        """End the process: only of a destination that has what the source runs again
        (:mod:`vmtune.hypervisor.qmp.arrival`). No list of commands allows it.

        :raise VmtuneError: as :meth:`execute` does.
        """


MakeLink = Callable[[Path, OnEvent, Callable[[], None]], Link]
"""Makes the link of a path; the last argument is called when a connection was lost."""


class Qemu:
    """A QEMU that listens on *path*. What is remembered is forgotten with each connection,
    since the socket may be another QEMU's by then.

    :param heard: receives each event's name and data; *lost* is called when the connection ended.
    :param tunables: what is read of it, packs included.
    """

    def __init__(
        self,
        path: Path,
        make_link: MakeLink,
        heard: Callable[[Qemu, str, Mapping[str, Any]], None],  # any JSON
        lost: Callable[[Qemu], None],
        tunables: TunableRegistry,
    ) -> None:
        self.path = path
        self._tunables = tunables
        self.monitor = make_link(
            path, lambda name, data: heard(self, name, data), lambda: lost(self)
        )
        self.uuid = _NO_UUID
        self.name = path.stem
        self._probe: QemuProbe | None = None
        self._met = 0
        self._attempt: asyncio.Task[None] | None = None

    @property
    def known(self) -> bool:
        """Whether its identity is known, from itself or its command line."""
        return self.uuid != _NO_UUID

    @property
    def probe(self) -> QemuProbe:
        """Reads this QEMU. Only for one that was connected."""
        assert self._probe is not None, "connect() comes first"
        return self._probe

    async def connect(self) -> None:
        """Connect unless connected, and learn its identity. Concurrent callers share the attempt,
        so that a silent monitor costs its timeout once.

        :raise VmtuneError: as :meth:`Link.connect` does.
        """
        if self.monitor.connected and self._met == self.monitor.connections:
            return
        if self._attempt is None or self._attempt.done():
            self._attempt = asyncio.create_task(self._connect(), name=f"connect {self.path}")
            # There may be no caller left for its result.
            self._attempt.add_done_callback(lambda task: task.cancelled() or task.exception())
        attempt = self._attempt
        try:
            await asyncio.shield(attempt)
        except asyncio.CancelledError:
            if not attempt.cancelled():
                raise  # not the attempt, but its waiting caller
            raise HostUnreachable(f"vmtune let go of {self.path}") from None

    async def close(self) -> None:
        """Let go of the monitor."""
        if self._attempt is not None and not self._attempt.done():
            self._attempt.cancel()
            await asyncio.wait([self._attempt])
        await self.monitor.close()

    async def _connect(self) -> None:
        try:
            await self.monitor.connect()
        except MonitorBusy:
            self._recognise()
            raise
        uuid = await self.monitor.execute("query-uuid")
        name = await self.monitor.execute("query-name")
        with reading_reply("who it is"):
            self._is(UUID(uuid["UUID"]), str(name.get("name", "")))
        self._probe = QemuProbe(self.monitor, self._tunables, self.process())
        self._met = self.monitor.connections

    def _is(self, uuid: UUID, name: str) -> None:
        # A name is the operator's word for the same VM on two hosts; a path is not.
        made_of = f"qemu:name:{name}" if name else f"qmp+unix://{self.path}"
        self.uuid = uuid if uuid != _NO_UUID else uuid5(NAMESPACE_URL, made_of)
        self.name = name or self.path.stem

    def _recognise(self) -> None:
        """Its identity by its command line, while another client has its monitor."""
        process = self.process()
        if process is None or not any(str(self.path) in a for a in process.arguments() or ()):
            return  # out of sight, or no QEMU
        uuids = process.option("uuid")
        names = process.option("name")
        if uuids is None or names is None:
            return
        name = names[-1].get("guest", names[-1].get("", "")) if names else ""
        try:
            self._is(UUID(uuids[-1][""]) if uuids else _NO_UUID, name)
        except (ValueError, KeyError):
            return

    def process(self) -> QemuProcess | None:
        return QemuProcess(self.monitor.pid) if self.monitor.pid else None
