"""uvicorn's HTTP/1.1, with two additions: the peer of a unix socket, and a time limit for sending a
request."""

from __future__ import annotations

import asyncio
import socket
import struct
from enum import Enum

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from vmtune.api.serving.connections import Connection, Connections
from vmtune.api.serving.logs import RareWarnings
from vmtune.services.access.users import Peer

rarely = RareWarnings(structlog.get_logger(__name__))
"""What strangers cause is logged once a second: they must not fill the log."""

_HEAD_WITHIN_S = 10.0
_BODY_WITHIN_S = 60.0
_MAX_HEAD_BYTES = 64 << 10

_UCRED = struct.Struct("3i")  # struct ucred of unix(7): pid, uid, gid
_SO_PEERGROUPS = 59  # socket(7), since Linux 4.13; Python has no name for it
_MAX_OPTION_BYTES = 1024  # all that Python's getsockopt gives: 256 groups


class _Part(Enum):
    """Which part of a request is expected next."""

    HEAD = "head"
    BODY = "body"
    NOTHING = "nothing"


class Protocol(HttpToolsProtocol):
    """One connection. ``scope["state"]["peer"]`` is the :class:`Peer` behind a unix socket,
    and None over TCP.

    A client that takes more than 10 s for a request's head, or 60 s for its body, is disconnected:
    else a few hundred slow ones would block all others. Of TCP connections there are as many as
    :class:`~vmtune.api.serving.connections.Connections` has; the unix socket is always served. A
    head of more than 64 KiB is refused. ``scope["state"]["connection"]`` is what counts it, and
    None on the unix socket.
    """

    tcp_connections: Connections
    """Set by :func:`speaking`."""
    connection: Connection | None = None
    _part = _Part.NOTHING
    _head_bytes = 0
    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Identify the peer."""
        super().connection_made(transport)
        one = transport.get_extra_info("socket")
        is_unix = one is not None and one.family == socket.AF_UNIX
        if not is_unix and self.connection is None:
            address = self.client[0] if self.client else ""
            self.connection, ended = self.tcp_connections.enter(address, transport.abort)
            if ended is not None:
                rarely("too many connections: one was ended", client=ended.address)
        elif self.connection is not None:
            self.connection.end = transport.abort
        peer = peer_of(one) if is_unix else None
        self.app_state = {**self.app_state, "peer": peer, "connection": self.connection}
        self._expect(_Part.HEAD)

    def data_received(self, data: bytes) -> None:
        """Continue, unless the head is too long."""
        super().data_received(data)
        if self._part is _Part.HEAD:
            self._head_bytes += len(data)
            if self._head_bytes > _MAX_HEAD_BYTES:
                self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        """A request's first byte has come."""
        super().on_message_begin()
        self._expect(_Part.HEAD)

    def on_headers_complete(self) -> None:
        """Its head is whole: it is passed on."""
        if self.connection is not None:
            self.connection.is_busy = True
            self.tcp_connections.touch(self.connection)
        super().on_headers_complete()
        self._expect(_Part.BODY)

    def on_message_complete(self) -> None:
        """The request is complete. After its answer, uvicorn's keep-alive limit applies."""
        super().on_message_complete()
        self._expect(_Part.NOTHING)

    def on_response_complete(self) -> None:
        """The request is answered."""
        if self.connection is not None:
            self.connection.is_busy = bool(self.pipeline)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """No time limit runs any more, and it counts no more."""
        if self.connection is not None:
            self.tcp_connections.leave(self.connection)
        self._expect(_Part.NOTHING)
        super().connection_lost(exc)

    def _expect(self, part: _Part) -> None:
        """Wait for *part* to be complete, with as much time as it has."""
        if part is self._part:
            return
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
        self._part, self._head_bytes = part, 0
        if part is not _Part.NOTHING:
            within_s = _HEAD_WITHIN_S if part is _Part.HEAD else _BODY_WITHIN_S
            self._limit = self.loop.call_later(within_s, self._too_slow)

    def _too_slow(self) -> None:
        rarely("a client was too slow", client=str(self.client), part=self._part.value)
        self.transport.abort()


def speaking(tcp_connections: Connections) -> type[Protocol]:
    """The protocol of a server whose TCP connections are in *tcp_connections*."""
    return type("BoundProtocol", (Protocol,), {"tcp_connections": tcp_connections})


def peer_of(one: socket.socket) -> Peer | None:
    """The process at the other end of a unix socket, as the kernel noted it when it
    connected; None where the kernel does not say."""
    try:
        found = one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    except OSError:
        return None
    pid, uid, gid = _UCRED.unpack(found)
    if pid <= 0 or uid < 0:
        return None
    groups = _groups(one)
    return Peer(pid, uid, frozenset({gid, *(groups or ())}), has_more=groups is None)


def _groups(one: socket.socket) -> list[int] | None:
    """The process's supplementary groups; None where they are too many for the kernel's answer."""
    try:
        found = one.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MAX_OPTION_BYTES)
    except OSError:
        return None
    return [number for (number,) in struct.iter_unpack("I", found)]
