"""Local users that may use the unix socket."""

from __future__ import annotations

import asyncio
import grp
import os
import pwd
import time
from collections.abc import Callable
from dataclasses import dataclass

from vmtune.errors import Forbidden, SetupError
from vmtune.model.access.scopes import FULL, Identity, Kind

_ROOT = 0
_REMEMBERED_S = 10.0


@dataclass(frozen=True, slots=True)
class Peer:
    """The process at the other end of a unix socket.

    :param groups: its own group and its supplementary ones.
    """

    pid: int
    uid: int
    groups: frozenset[int]


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

    def identify(self, peer: Peer) -> Identity:
        """The user of the process.

        :raise Forbidden: a user who may not use the service.
        """
        known = peer.uid in (_ROOT, os.geteuid()) or self._number in peer.groups
        name = user_name(peer.uid)
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


def user_name(uid: int) -> str:
    """The user's name; empty where it has none (a container's users often do not)."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""
