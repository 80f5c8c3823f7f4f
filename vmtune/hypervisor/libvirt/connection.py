"""One host's connection: opened when needed, noticed when lost, never in the loop's way."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any, TypeVar
from uuid import UUID

from vmtune import tracing
from vmtune.errors import HostUnreachable, OutcomeUnknown, VmtuneError
from vmtune.hypervisor.event_hub import EventHub
from vmtune.hypervisor.guard import OPEN, Guard
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.calls.opening import open_connection
from vmtune.hypervisor.libvirt.events import read_event
from vmtune.hypervisor.libvirt.reach import silent
from vmtune.hypervisor.libvirt.threads import Workers, may_be_left
from vmtune.hypervisor.protocol import DriverEvent, EventKind

_T = TypeVar("_T")
_Call = Callable[[Connection], _T]

# A libvirt daemon serves five calls of one client at a time (max_client_requests in
# libvirtd.conf) and then no longer reads, not even keepalives. Calls that may wait for
# another operation on their VM get three of them, so that the others always find room.
_WAITING_CALLS, _QUICK_CALLS = 3, 2
_OPEN_WITHIN_S = 20.0
_MOST_STUCK, _STUCK_FOR_S = 3, 3600.0
_RETRY_S = (0.5, 1, 2, 5, 10, 30)


class Link:
    """Runs calls on the host's connection, in threads.

    :param open_: how to connect; raises :class:`~vmtune.errors.HostUnreachable`.
    :param guard: lets through what changes something.
    """

    def __init__(
        self,
        uri: str,
        open_: Callable[[str], Connection] = open_connection,
        guard: Guard = OPEN,
    ) -> None:
        self._uri = uri
        self._guard = guard
        self._open = open_
        self._waiting = Workers("libvirt-vm", _WAITING_CALLS)
        self._quick = Workers("libvirt-host", _QUICK_CALLS)
        self._opener = Workers("libvirt-open", 1)
        self._connection: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._stuck: dict[asyncio.Task[Connection], float] = {}
        self._reconnecting: asyncio.Task[None] | None = None
        self._closed = False
        self._hub = EventHub()
        self.generation = 0
        """Grows with each connection: what was learnt over an older one may be stale."""
        self.lost_at_s = -math.inf

    async def ask(self, call: _Call[_T], waits: bool = False) -> _T:
        """Run a call that changes nothing; once more if the connection was lost on the way.

        :param waits: libvirt may let it wait for another operation on the VM.
        :raise HostUnreachable: no connection, or lost twice.
        """
        try:
            return await self._run(call, waits)
        except OutcomeUnknown:
            try:
                return await self._run(call, waits)
            except OutcomeUnknown as error:
                raise HostUnreachable(error.message, field="uri") from error

    async def change(self, call: _Call[_T], waits: bool = True) -> _T:
        """Run a call that changes something, once.

        :raise OutcomeUnknown: the connection was lost on the way.
        """
        with tracing.span(_name_of(call), uri=self._uri):
            await self._guard.wait()

            def guarded(connection: Connection) -> _T:
                self._guard.check()
                return call(connection)

            return await self._run(guarded, waits)

    async def _run(self, call: _Call[_T], waits: bool) -> _T:
        connection = await self.connection()
        workers = self._waiting if waits else self._quick
        try:
            # A caller that stops waiting does not stop the call: the thread stays taken until it
            # ends.
            return await asyncio.shield(workers.submit(lambda: call(connection)))
        except OutcomeUnknown:
            self._lose(connection, "a call failed")
            raise

    async def connection(self) -> Connection:
        """The connection, opened if there is none.

        :raise HostUnreachable: it cannot be, or not within 20 s.
        """
        if self._connection is not None:
            return self._connection
        if self._closed:
            raise HostUnreachable(f"vmtune has let go of {self._uri}", field="uri")
        if self._opening is None or self._opening.done():
            # One at a time: later callers wait for an attempt that hangs.
            self._opening = asyncio.create_task(self._connect(), name=f"open {self._uri}")
            may_be_left(self._opening)
        opening = self._opening
        try:
            async with asyncio.timeout(_OPEN_WITHIN_S):
                return await asyncio.shield(opening)
        except TimeoutError:
            self._leave(opening)
            raise HostUnreachable(
                f"{self._uri} did not answer within {_OPEN_WITHIN_S:g} s",
                field="uri",
                remedy=silent(self._uri),
            ) from None

    def _leave(self, opening: asyncio.Task[Connection]) -> None:
        """Leave an attempt that hangs, so that the next one does not wait for it: libvirt has no
        time limit for opening a connection. Each holds a thread until it ends, so there are few."""
        now = time.monotonic()
        self._stuck = {task: since for task, since in self._stuck.items() if not task.done()}
        recent = [since for since in self._stuck.values() if now - since < _STUCK_FOR_S]
        if self._opening is not opening or opening.done() or len(recent) >= _MOST_STUCK:
            return
        self._stuck[opening] = now
        self._opening = None
        self._opener.close()
        self._opener = Workers("libvirt-open", 1)

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()

        def open_and_watch() -> Connection:
            connection = self._open(self._uri)

            def later(call: Callable[..., None], *arguments: object) -> None:
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(call, *arguments)

            def on_event(name: str, vm: UUID, details: tuple[Any, ...]) -> None:
                event = read_event(name, vm, details)
                if event is not None:
                    later(self._hub.publish, event)

            try:
                connection.watch(on_event, lambda why: later(self._lose, connection, why))
            except VmtuneError:
                connection.close()
                raise
            return connection

        connection = await self._opener.submit(open_and_watch)
        if self._closed:
            self._quick.submit(connection.close)
            raise HostUnreachable(f"vmtune has let go of {self._uri}", field="uri")
        if self._connection is not None:  # a later attempt was first
            self._quick.submit(connection.close)
            return self._connection
        self._connection = connection
        self.generation += 1
        self._hub.publish(DriverEvent(EventKind.CONNECTED, None, self._uri))
        return connection

    def _lose(self, connection: Connection, why: str) -> None:
        """Forget a lost connection, notify the watchers, and reconnect."""
        if self._connection is not connection:
            return
        self._connection = None
        self.lost_at_s = time.monotonic()
        self._hub.publish(DriverEvent(EventKind.CONNECTION_LOST, None, why))
        self._opener.submit(connection.close)
        if self._reconnecting is None or self._reconnecting.done():
            self._reconnecting = asyncio.create_task(self._reconnect(), name="libvirt-reconnect")

    async def _reconnect(self) -> None:
        """For the watchers only: each call connects anyway."""
        attempt = 0
        while not self._closed and self._connection is None:
            await asyncio.sleep(_RETRY_S[min(attempt, len(_RETRY_S) - 1)])
            attempt += 1
            with contextlib.suppress(VmtuneError):
                await self.connection()

    def events(self) -> AsyncGenerator[DriverEvent, None]:
        """What happens from now on, or from when a connection can be made."""
        if self._connection is None and not self._closed:
            if self._reconnecting is None or self._reconnecting.done():
                self._reconnecting = asyncio.create_task(self._connect_for_events())
        return self._hub.events()

    async def _connect_for_events(self) -> None:
        with contextlib.suppress(VmtuneError):
            await self.connection()
        await self._reconnect()

    async def close(self) -> None:
        """Let go of the connection and the threads. A call that hangs is left behind."""
        self._closed = True
        self._hub.close()
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            await asyncio.gather(self._reconnecting, return_exceptions=True)
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_WITHIN_S):
                    await asyncio.shield(self._opener.submit(connection.close))
        for workers in (self._waiting, self._quick, self._opener):
            workers.close()


_CLOSE_WITHIN_S = 2.0


def _name_of(call: object) -> str:
    """A call in traces, by the function that makes it."""
    name = getattr(call, "__qualname__", "call")
    return f"libvirt {name.partition('.<locals>')[0]}"
