"""uvicorn's HTTP/1.1, with two additions: the peer of a unix socket, and a time limit for sending a
request."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import socket
import struct
from enum import Enum

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from vmtune.services.access.users import Peer

log = structlog.get_logger(__name__)

_HEAD_WITHIN_S = 10.0
_BODY_WITHIN_S = 60.0
_MOST_CONNECTIONS = 500
_MOST_HEAD_BYTES = 64 << 10

_UCRED = struct.Struct("3i")  # struct ucred of unix(7): pid, uid, gid
_SO_PEERGROUPS = 59  # socket(7), since Linux 4.13; Python has no name for it
_MOST_OPTION_BYTES = 1024  # all that Python's getsockopt gives: 256 groups


class _Part(Enum):
    """Which part of a request is expected next."""

    HEAD = "head"
    BODY = "body"
    NOTHING = "nothing"


class Protocol(HttpToolsProtocol):
    """One connection. ``scope["state"]["peer"]`` is the :class:`Peer` behind a unix socket,
    and None over TCP.

    A client that takes more than 10 s for a request's head, or 60 s for its body, is disconnected:
    else a few hundred slow ones would block all others. So are TCP connections
    beyond 500; the unix socket is always served. A head of more than 64 KiB is refused.
    """

    _part = _Part.NOTHING
    _head_bytes = 0
    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Identify the peer."""
        super().connection_made(transport)
        one = transport.get_extra_info("socket")
        is_unix = one is not None and one.family == socket.AF_UNIX
        self.app_state = {**self.app_state, "peer": peer_of(one) if is_unix else None}
        if not is_unix and len(self.connections) > _MOST_CONNECTIONS:
            log.warning("too many connections", client=str(self.client), most=_MOST_CONNECTIONS)
            transport.abort()
            return
        self._expect(_Part.HEAD)

    def data_received(self, data: bytes) -> None:
        """Continue, unless the head is too long."""
        super().data_received(data)
        if self._part is _Part.HEAD:
            self._head_bytes += len(data)
            if self._head_bytes > _MOST_HEAD_BYTES:
                self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        """A request's first byte has come."""
        super().on_message_begin()
        self._expect(_Part.HEAD)

    def on_headers_complete(self) -> None:
        """Its head is whole: it is passed on."""
        super().on_headers_complete()
        self._expect(_Part.BODY)

    def on_message_complete(self) -> None:
        """The request is complete. After its answer, uvicorn's keep-alive limit applies."""
        super().on_message_complete()
        self._expect(_Part.NOTHING)

    def connection_lost(self, exc: Exception | None) -> None:
        """No time limit runs any more."""
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
        log.info("a client was too slow", client=str(self.client), part=self._part.value)
        self.transport.abort()


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
    return Peer(pid, uid, frozenset({gid, *_groups(one, uid, gid)}))


def _groups(one: socket.socket, uid: int, gid: int) -> list[int]:
    """The process's supplementary groups; where they are too many, those that its user has
    by the user database."""
    with contextlib.suppress(OSError):
        found = one.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MOST_OPTION_BYTES)
        return [number for (number,) in struct.iter_unpack("I", found)]
    with contextlib.suppress(KeyError, OSError):
        return os.getgrouplist(pwd.getpwuid(uid).pw_name, gid)
    return []
