"""One QEMU's monitor by its unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from qemu.qmp import ConnectError, EventListener, ExecuteError, QMPClient, QMPError, Runstate
from qemu.qmp.message import Message
from qemu.qmp.qmp_client import GreetingError

from vmtune import tracing
from vmtune.errors import CommandRefused, HostUnreachable, MonitorBusy, OutcomeUnknown
from vmtune.hypervisor.guard import ASKS, OPEN, Guard
from vmtune.hypervisor.qemu.allowlist import check
from vmtune.hypervisor.qmp.client import LeanClient
from vmtune.hypervisor.qmp.qemu import OnEvent

# qemu.qmp logs what it also raises; raised errors reach the user in vmtune's own words.
_QUIET = logging.getLogger("vmtune.quiet.qmp")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False


NO_QEMU = "no_qemu"
"""The code of the error where a socket has no QEMU behind it (any more)."""

_QUEUE_AGAIN_S = 0.02
_UCRED = struct.Struct("3i")  # struct ucred of unix(7): pid, uid, gid


class _NoGreeting(HostUnreachable):
    """Something else came than a greeting."""


class _Relay(EventListener):
    """Passes events on at once. Waiting in ``get`` would never end when QEMU dies."""

    def __init__(self, to: Callable[[Message], None]) -> None:
        super().__init__()
        self._to = to

    async def put(self, event: Message) -> None:
        self._to(event)


class QmpMonitor:
    """A :class:`~vmtune.hypervisor.qmp.qemu.Link` over a socket that QEMU listens on.

    :param path: the socket.
    :param on_event: receives each event's name and data.
    :param on_lost: is called when a connection ends that vmtune did not close.
    :param greeting_timeout_s: QEMU serves one client at a time and leaves others waiting
        for its greeting, so silence means that another client is connected.
    :param reply_timeout_s: how long a command may take.
    :param more_commands: see :func:`vmtune.hypervisor.qemu.allowlist.check`.
    :param guard: lets through what changes something.
    """

    def __init__(
        self,
        path: Path,
        on_event: OnEvent,
        on_lost: Callable[[], None],
        greeting_timeout_s: float = 2.0,
        reply_timeout_s: float = 30.0,
        more_commands: Collection[str] = (),
        guard: Guard = OPEN,
    ) -> None:
        self.path = path
        self._guard = guard
        self.pid: int | None = None
        self.connections = 0
        self._on_event = on_event
        self._on_lost = on_lost
        self._greeting_timeout_s = greeting_timeout_s
        self._reply_timeout_s = reply_timeout_s
        self._more_commands = more_commands
        self._client: QMPClient | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()

    @property
    def connected(self) -> bool:
        """Whether a command would go out without connecting first."""
        return self._client is not None and self._client.runstate is Runstate.RUNNING

    async def connect(self) -> None:
        """Connect unless connected. :attr:`connections` counts: QEMU may be another then.

        :raise MonitorBusy: no greeting came.
        :raise HostUnreachable: no process listens on the socket, or it may not be opened.
        """
        async with self._connecting:
            if not self.connected:
                if self._keeper is not None:
                    await asyncio.wait([self._keeper])  # it is reporting the loss
                await self.close()
                await self._connect()

    async def execute(
        self,
        command: str,
        arguments: Mapping[str, Any] | None = None,  # any JSON
    ) -> Any:  # any JSON: the reply's "return"
        """Run one command; see :meth:`vmtune.hypervisor.qemu.monitor.Monitor.execute`.

        :raise CommandRefused: also where vmtune does not send such a command.
        :raise HostUnreachable: not connected. It does not connect by itself: behind the
            socket there may be another QEMU by now, which the caller has to find out.
        """
        check(command, arguments, self._more_commands)
        if command.startswith(ASKS):
            return await self._send(command, arguments, asks=True)
        with tracing.span(f"qmp {command}", monitor=str(self.path)):
            await self._guard.wait()
            return await self._send(command, arguments, asks=False)

    async def end_qemu(self) -> None:
        """See :meth:`vmtune.hypervisor.qmp.qemu.Link.end_qemu`."""
        await self._guard.wait()
        await self._send("quit", None, asks=False)

    async def _send(self, command: str, arguments: Mapping[str, Any] | None, asks: bool) -> Any:
        client = self._client
        if client is None or client.runstate is not Runstate.RUNNING:
            raise HostUnreachable(f"the connection to {self.path} was lost")
        try:
            async with asyncio.timeout(self._reply_timeout_s):
                if not asks:
                    self._guard.check()
                return await client.execute(command, arguments, oob=_out_of_band(client, command))
        except ExecuteError as refusal:
            raise CommandRefused(str(refusal)) from refusal  # QEMU's description alone
        except TimeoutError as error:
            raise OutcomeUnknown(
                f"QEMU did not answer {command} within {self._reply_timeout_s:g} s",
                remedy="see whether QEMU hangs, then look again",
            ) from error
        except (QMPError, OSError, EOFError) as error:
            raise OutcomeUnknown(
                f"the connection to QEMU was lost before it answered {command}",
                remedy="look again whether it took effect",
            ) from error

    async def close(self) -> None:
        """Let go of the monitor, so that others may have it."""
        keeper, self._keeper = self._keeper, None
        client, self._client = self._client, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.wait([keeper])
        if client is not None:
            await _disconnect(client)

    async def _connect(self) -> None:
        try:
            client = await self._greeted()
        except _NoGreeting:
            # An event came instead: QEMU sends its first ones also to clients that connect while it
            # is still starting, before the greeting. Now it has started.
            client = await self._greeted()
        self._client = client
        self.connections += 1
        self._keeper = asyncio.create_task(self._keep(client), name=f"qmp {self.path}")

    async def _greeted(self) -> QMPClient:
        client = LeanClient()
        client.logger = _QUIET
        client.register_listener(_Relay(self._relay))
        stream = socket.socket(socket.AF_UNIX)
        stream.setblocking(False)
        try:
            async with asyncio.timeout(self._greeting_timeout_s):
                await self._open(stream)
                await client.connect(stream)
        except TimeoutError as error:
            raise _busy(self.path) from error
        except ConnectError as error:
            kind = _NoGreeting if isinstance(error.exc, GreetingError) else HostUnreachable
            raise kind(
                f"{self.path} is not a QMP monitor, or QEMU just ended: {error.exc}", code=NO_QEMU
            ) from error
        finally:
            if client.runstate is not Runstate.RUNNING:
                stream.close()
        return client

    async def _open(self, stream: socket.socket) -> None:
        """Connect the socket, and identify the QEMU behind it."""
        try:
            while True:
                try:
                    stream.connect(str(self.path))
                    break
                except BlockingIOError:
                    # Its queue is full of clients that wait, or have stopped waiting.
                    await asyncio.sleep(_QUEUE_AGAIN_S)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise HostUnreachable(f"no QEMU listens on {self.path}", code=NO_QEMU) from error
        except OSError as error:
            raise HostUnreachable(
                f"{self.path} cannot be opened: {error.strerror or error}",
                remedy="let the user that vmtune runs as open QEMU's monitor",
            ) from error
        credentials = stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
        self.pid = _UCRED.unpack(credentials)[0] or None

    async def _keep(self, client: QMPClient) -> None:
        """Notice the connection's end: nothing else would before the next command."""
        while client.runstate is Runstate.RUNNING:
            await client.runstate_changed()
        await _disconnect(client)
        self._on_lost()

    def _relay(self, event: Message) -> None:
        data = event.get("data")
        self._on_event(str(event["event"]), data if isinstance(data, dict) else {})


OUT_OF_BAND = frozenset({"migrate-pause", "migrate-recover"})
"""Commands for a QEMU whose main loop may wait for a page that only they can bring (QEMU's
docs/devel/migration/postcopy.rst)."""


def _out_of_band(client: QMPClient, command: str) -> bool:
    greeting = client.greeting
    offered = greeting is not None and "oob" in greeting.QMP.capabilities
    return offered and command in OUT_OF_BAND


async def _disconnect(client: QMPClient) -> None:
    # It raises whatever ended the connection, EOFError when QEMU died.
    with contextlib.suppress(QMPError, OSError, EOFError):
        await client.disconnect()


def _busy(path: Path) -> MonitorBusy:
    return MonitorBusy(
        f"{path} gives no greeting: another client is connected to it, or QEMU hangs",
        remedy="disconnect the other client, or give QEMU a second -qmp socket for vmtune",
    )
