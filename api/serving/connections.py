"""The TCP connections, counted as they are accepted, and which of them go when there are too many.

Nobody has to prove anything to open a connection, so strangers can open as many as there may be.
Refusing the next one would let them lock everybody out: instead the newest is let in, and the one
that is worth the least is ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Hashable

import structlog

from vmtune.services.access.throttle import key_of

log = structlog.get_logger(__name__)

MAX_CONNECTIONS = 500
_HANDSHAKE_WITHIN_S = 10.0
_RETRY_S = 1.0


class Connection:
    """One connection.

    :param address: from where it comes.
    :param end: ends it.
    """

    __slots__ = ("address", "caller", "end", "is_busy", "used")

    def __init__(self, address: str, end: Callable[[], None], used: int) -> None:
        self.address = address
        self.end = end
        self.used = used
        self.caller: Hashable | None = None
        """Who has sent a request that was let in; None for a stranger."""
        self.is_busy = False
        """Whether a request is being answered."""

    @property
    def holder(self) -> Hashable:
        """Whose it is: of strangers their address, or network."""
        return self.address if self.caller is None else self.caller


class Connections:
    """The TCP connections that there are.

    :param most: how many at a time.
    """

    def __init__(self, most: int = MAX_CONNECTIONS) -> None:
        self._most = most
        self._connections: set[Connection] = set()
        self._order = itertools.count()

    def __len__(self) -> int:
        return len(self._connections)

    def enter(self, address: str, end: Callable[[], None]) -> tuple[Connection, Connection | None]:
        """Count a connection that was accepted. The second is the one that was ended for it; None
        where there was room."""
        ended = None
        if len(self._connections) >= self._most:
            ended = self._least_wanted()
            self.leave(ended)
            ended.end()
        connection = Connection(key_of(address), end, next(self._order))
        self._connections.add(connection)
        return connection, ended

    def leave(self, connection: Connection) -> None:
        """The connection has ended."""
        self._connections.discard(connection)

    def end_all(self) -> None:
        """End those that are left, as when the service stops."""
        for connection in tuple(self._connections):
            connection.end()

    def touch(self, connection: Connection) -> None:
        """A request has come by it."""
        connection.used = next(self._order)

    def _least_wanted(self) -> Connection:
        """Strangers go before callers with rights, and of these the idle ones first; of equals, one
        of whoever holds the most, and of those the one that was used longest ago."""
        held = Counter(connection.holder for connection in self._connections)

        def worth(connection: Connection) -> tuple[bool, bool, int, int]:
            known = connection.caller is not None
            return known, known and connection.is_busy, -held[connection.holder], connection.used

        return min(self._connections, key=worth)


class TlsAcceptor:
    """Accepts TLS connections, and counts them from then on: asyncio's own servers show a
    connection only after its handshake, which need not end.

    :param make: the protocol to speak within TLS, over that connection.
    """

    def __init__(
        self,
        listener: socket.socket,
        connections: Connections,
        context: ssl.SSLContext,
        make: Callable[[Connection], asyncio.Protocol],
    ) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._connections = connections
        self._context = context
        self._make = make
        self._handshakes: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._accepting = asyncio.ensure_future(self._accept())

    async def close(self) -> None:
        """Accept no more, and end handshakes."""
        self._accepting.cancel()
        for connection in tuple(self._handshakes):
            connection.end()
        await asyncio.gather(self._accepting, *self._tasks, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                one, address = await loop.sock_accept(self._listener)
            except OSError as error:
                log.warning("cannot accept connections", reason=error.strerror)
                await asyncio.sleep(_RETRY_S)  # there are too many open files, most likely
                continue
            connection, _ = self._connections.enter(
                str(address[0]), functools.partial(_hang_up, one)
            )
            self._handshakes.add(connection)
            task = loop.create_task(self._shake_hands(one, connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _shake_hands(self, one: socket.socket, connection: Connection) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._make(connection),
                one,
                ssl=self._context,
                ssl_handshake_timeout=_HANDSHAKE_WITHIN_S,
            )
        except OSError:  # of a stranger who speaks no TLS, or has gone; ssl.SSLError is one
            self._connections.leave(connection)
        finally:
            self._handshakes.discard(connection)


def _hang_up(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
