"""HTTP/1.1 as uvicorn speaks it, with two things more: who is at the other end of a unix
socket, and how long a client may take to send a request."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import socket
import struct
from typing import Any

import h11
import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol

from vmtune.services.access_users import Peer

log = structlog.get_logger(__name__)

_HEAD_WITHIN_S = 10.0
_BODY_WITHIN_S = 60.0
_MOST_CONNECTIONS = 500

_UCRED = struct.Struct("3i")  # struct ucred of unix(7): pid, uid, gid
_SO_PEERGROUPS = 59  # socket(7), since Linux 4.13; Python has no name for it
_MOST_OPTION_BYTES = 1024  # all that Python's getsockopt gives: 256 groups


class Protocol(H11Protocol):
    """One connection. ``scope["state"]["peer"]`` is the :class:`Peer` behind a unix socket,
    and None over TCP.

    A client that takes more than 10 s for a request's head, or 60 s for its body, is cut
    off: else a few hundred slow ones would keep everybody else away. So are TCP connections
    beyond 500; the unix socket is always served.
    """

    _limit: asyncio.TimerHandle | None = None
    _limited: object = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Learn who it is."""
        super().connection_made(transport)
        one = transport.get_extra_info("socket")
        is_unix = one is not None and one.family == socket.AF_UNIX
        self.app_state = {**self.app_state, "peer": peer_of(one) if is_unix else None}
        if not is_unix and len(self.connections) > _MOST_CONNECTIONS:
            log.warning("too many connections", client=str(self.client), most=_MOST_CONNECTIONS)
            transport.abort()
            return
        self._expect(h11.IDLE)

    def data_received(self, data: bytes) -> None:
        """Go on, with as much time as the request's present part has."""
        super().data_received(data)
        self._expect(self.conn.their_state)

    def on_response_complete(self) -> None:
        """From now on uvicorn's keep-alive limit holds."""
        self._expect(None)
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:  # the next request came with the last one
            self._expect(h11.SEND_BODY)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._expect(None)
        super().connection_lost(exc)

    def _expect(self, part: Any) -> None:  # any: h11's states are classes of its own
        """Wait for a request's head (IDLE) or body (SEND_BODY) to be complete."""
        within = {h11.IDLE: _HEAD_WITHIN_S, h11.SEND_BODY: _BODY_WITHIN_S}.get(part)
        if self._limit is not None:
            if part is self._limited:
                return
            self._limit.cancel()
            self._limit = None
        self._limited = part
        if within is not None:
            self._limit = self.loop.call_later(within, self._too_slow)

    def _too_slow(self) -> None:
        log.info("a client was too slow", client=str(self.client), part=str(self._limited))
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
