"""The QEMUs whose QMP sockets are in one folder: found, connected, asked."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from vmtune.errors import CommandRefused, HostUnreachable, NotFound, OutcomeUnknown, VmtuneError
from vmtune.hypervisor.qemu.names import vm_state
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.hypervisor.qmp.monitor import NO_QEMU
from vmtune.hypervisor.qmp.qemu import MakeLink, Qemu
from vmtune.model.host.facts import VmState
from vmtune.model.tunables.registry import TunableRegistry

_T = TypeVar("_T")
_SUFFIXES = (".sock", ".qmp")


def sockets_in(folder: Path) -> list[Path]:
    """The sockets of a folder that are named like monitors.

    :raise HostUnreachable: it is no folder, or may not be read.
    """
    try:
        with os.scandir(folder) as entries:
            names = [e.name for e in entries if e.name.endswith(_SUFFIXES)]
    except OSError as error:
        raise HostUnreachable(
            f"the folder {folder} cannot be read: {error.strerror}",
            field="uri",
            remedy="name the folder that holds the QMP sockets",
        ) from error
    return sorted(folder / name for name in names)


async def state_of(qemu: Qemu) -> VmState:
    """What a QEMU's VM is doing."""
    reply = await qemu.monitor.execute("query-status")
    with reading_reply("what it is doing"):
        return vm_state(reply["status"])


class QemuFolder:
    """A folder of sockets named ``*.sock`` or ``*.qmp``, each a QEMU's.

    :param sockets: lists them, as :func:`sockets_in` does.
    :param make_link: makes a socket's link.
    :param heard: receives each event's name and data; *lost* is called when a connection ended.
    :param gone: is called for each QEMU whose socket is no longer there.
    :param tunables: tells what is read of the QEMUs, packs included, when one is found.
    """

    def __init__(
        self,
        path: Path,
        sockets: Callable[[], list[Path]],
        make_link: MakeLink,
        heard: Callable[[Qemu, str, Mapping[str, Any]], None],  # any JSON
        lost: Callable[[Qemu], None],
        gone: Callable[[Qemu], None],
        tunables: Callable[[], TunableRegistry],
    ) -> None:
        self.path = path
        self._sockets = sockets
        self._make_link = make_link
        self._heard, self._lost, self._gone = heard, lost, gone
        self._tunables = tunables
        self._qemus: dict[Path, Qemu] = {}
        self._scanning: asyncio.Task[dict[Path, VmtuneError]] | None = None

    @property
    def qemus(self) -> Collection[Qemu]:
        """Those of the last scan, connected or not."""
        return tuple(self._qemus.values())

    async def close(self) -> None:
        """Let go of all monitors."""
        qemus, self._qemus = self._qemus, {}
        await asyncio.gather(*(qemu.close() for qemu in qemus.values()))

    async def ask(self, vm: UUID, question: Callable[[Qemu], Awaitable[_T]]) -> _T:
        """Ask, and ask again when the connection was lost on the way: asking changes
        nothing, and the QEMU may be gone or have another connection now.

        :raise NotFound: as :meth:`find` does.
        :raise HostUnreachable: the connection was lost again.
        """
        try:
            return await question(await self.find(vm))
        except (OutcomeUnknown, HostUnreachable):
            await self.scan()
            try:
                return await question(await self.find(vm))
            except OutcomeUnknown as error:
                raise HostUnreachable(error.message) from error

    async def find(self, vm: UUID) -> Qemu:
        """The VM's QEMU, connected.

        :raise NotFound: there is none, and every monitor could be asked.
        :raise MonitorBusy: the monitor that is or may be the VM's is taken.
        """
        found = self.connected(vm)
        if found is None and self._scanning is not None:
            # A scan is already running: most often it finds this one too.
            await asyncio.wait([self._scanning])
            found = self.connected(vm)
        if found is not None:
            return found
        problems = await self.scan()
        taken: VmtuneError | None = None
        for path, qemu in self._qemus.items():
            if qemu.known and qemu.uuid == vm and qemu.monitor.connected:
                return qemu
            if not qemu.known or qemu.uuid == vm:
                taken = taken or problems.get(path)
        raise taken or NotFound(f"{self.path} has no socket of a QEMU with the UUID {vm}")

    def connected(self, vm: UUID) -> Qemu | None:
        """The VM's QEMU, if it is connected already."""
        for qemu in self._qemus.values():
            if qemu.known and qemu.uuid == vm and qemu.monitor.connected:
                return qemu
        return None

    async def waiting_for(self, source: Qemu) -> Qemu:
        """The QEMU here that waits for *source*.

        :raise CommandRefused: there is none.
        """
        problems = await self.scan()
        for path, qemu in self._qemus.items():
            if qemu.known and qemu.uuid != source.uuid:
                continue
            if path in problems:
                raise problems[path]
            if await state_of(qemu) is VmState.INCOMING:
                return qemu
        raise CommandRefused(
            f"no QEMU in {self.path} waits for {source.name}",
            field="destination",
            code="no_incoming_qemu",
            remedy="start one there with the same -uuid, and with -incoming defer",
        )

    async def scan(self) -> dict[Path, VmtuneError]:
        """Connect to every socket of the folder.

        :return: what could not be reached, and why.
        :raise HostUnreachable: as :func:`sockets_in` does.
        """
        scan = asyncio.create_task(self._scan())
        self._scanning = scan
        try:
            return await scan
        finally:
            if self._scanning is scan:
                self._scanning = None

    async def _scan(self) -> dict[Path, VmtuneError]:
        paths = self._sockets()
        gone = [self._qemus.pop(path) for path in self._qemus.keys() - set(paths)]
        for qemu in gone:
            self._gone(qemu)
        for path in paths:
            if path not in self._qemus:
                self._qemus[path] = Qemu(
                    path, self._make_link, self._heard, self._lost, self._tunables()
                )
        qemus = [self._qemus[path] for path in paths]
        await asyncio.gather(*(qemu.close() for qemu in gone))
        answers = await asyncio.gather(*(q.connect() for q in qemus), return_exceptions=True)
        problems: dict[Path, VmtuneError] = {}
        for qemu, answer in zip(qemus, answers, strict=True):
            if isinstance(answer, VmtuneError):
                problems[qemu.path] = answer
                left_behind = answer.problems[0].code == NO_QEMU
                if left_behind and self._qemus.get(qemu.path) is qemu:
                    del self._qemus[qemu.path], problems[qemu.path]
            elif isinstance(answer, BaseException):
                raise answer
        return problems
