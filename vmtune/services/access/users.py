"""Local users that may use the unix socket."""

from __future__ import annotations

import asyncio
import grp
import math
import os
import pwd
import time
from collections.abc import Callable
from dataclasses import dataclass

from vmtune.errors import Forbidden, SetupError
from vmtune.model.access.scopes import FULL, Identity, Kind

_ROOT = 0
_REMEMBERED_S = 10.0
_MAX_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class Peer:
    """The process at the other end of a unix socket.

    :param groups: its own group and its supplementary ones.
    :param has_more: the kernel did not tell all of these: the user database has them.
    """

    pid: int
    uid: int
    groups: frozenset[int]
    has_more: bool = False


@dataclass(frozen=True, slots=True)
class UserEntry:
    """A user, by the user database."""

    name: str = ""
    groups: frozenset[int] = frozenset()


def group_id(name: str) -> int:
    """The number of the group of that name.
    :raise SetupError: no such group.
    """
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise SetupError(
            f"there is no group {name}",
            field="socket_group",
            code="no_group",
            remedy=f"create it with `groupadd --system {name}`, or set socket_group to another",
        ) from None


class LocalUsers:
    """Root, the user that the service runs as, and the members of one group.

    :param group: the group's name; empty for no group.
    :param clock: seconds; what the user database says is remembered for ten.
    :raise SetupError: there is no such group.
    """

    def __init__(self, group: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._group = group
        self._clock = clock
        self._number = group_id(group) if group else None
        self._remembered: dict[tuple[int, str], tuple[float | None, bool]] = {}
        self._entries: dict[int, tuple[float, UserEntry]] = {}

    async def identify(self, peer: Peer) -> Identity:
        """The user of the process.

        :raise Forbidden: a user who may not use the service.
        """
        entry = await self._entry(peer.uid)
        groups = peer.groups | entry.groups if peer.has_more else peer.groups
        known = peer.uid in (_ROOT, os.geteuid()) or self._number in groups
        name = entry.name
        if not known:
            raise Forbidden(
                f"user {name or peer.uid} may not use this service",
                field="socket",
                code="not_a_member",
                remedy=f"become a member of the group {self._group}, or use a token"
                if self._group
                else "ask as root, use a token, or let root set socket_group",
            )
        return Identity(Kind.USER, str(peer.uid), name, FULL)

    async def _entry(self, uid: int) -> UserEntry:
        """What the user database says, by a thread: it may ask the network."""
        now = self._clock()
        asked_at, entry = self._entries.get(uid, (-math.inf, UserEntry()))
        if now - asked_at >= _REMEMBERED_S:
            entry = await asyncio.to_thread(look_up, uid)
            self._entries.pop(uid, None)
            self._entries[uid] = (now, entry)
            while len(self._entries) > _MAX_REMEMBERED:
                del self._entries[next(iter(self._entries))]
        return entry

    async def still_may(self, uid: int, name: str) -> bool:
        """Whether that user exists and may still use the service."""
        if uid == _ROOT:
            return True
        now = self._clock()
        asked_at, known = self._remembered.get((uid, name), (None, False))
        if asked_at is None or now - asked_at >= _REMEMBERED_S:
            known = await asyncio.to_thread(self._look, uid, name)  # it may ask the network
            self._remembered[uid, name] = (now, known)
        return known

    def _look(self, uid: int, name: str) -> bool:
        try:
            entry = pwd.getpwuid(uid)
        except KeyError:
            return False
        if entry.pw_name != name:  # the number was given to another user
            return False
        if uid == os.geteuid():
            return True
        return self._number in os.getgrouplist(name, entry.pw_gid)


def look_up(uid: int) -> UserEntry:
    """The user database's entry of a user; empty where it has none (a container's users often do
    not)."""
    try:
        found = pwd.getpwuid(uid)
        return UserEntry(found.pw_name, frozenset(os.getgrouplist(found.pw_name, found.pw_gid)))
    except (KeyError, OSError):
        return UserEntry()
