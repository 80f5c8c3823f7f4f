"""The lease: how long this service may change its hosts after its last heartbeat."""

from __future__ import annotations

import asyncio
import time

from vmtune.errors import TakenOver

LEASE_S = 10.0
"""Shorter than the time after which others take over (:mod:`vmtune.services.cluster.cluster`)."""
_MAX_WAIT_S = 60.0


def now_s() -> float:
    """A clock that is never set, and that counts while the machine is suspended (s)."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """Implements :class:`vmtune.hypervisor.guard.Guard`. Its methods belong to the event loop, but
    for :meth:`check`."""

    def __init__(self, holds_s: float = LEASE_S) -> None:
        self._holds_s = holds_s
        self._renewed_s = -holds_s
        self._lost = False
        self._changed = asyncio.Event()

    @property
    def holds(self) -> bool:
        """Whether it is valid: renewed within its duration."""
        return not self._lost and now_s() - self._renewed_s < self._holds_s

    def renew(self, asked_s: float) -> None:
        """The database has confirmed it.

        :param asked_s: when it was asked, by :func:`now_s`: it may have answered much later.
        """
        self._renewed_s = max(self._renewed_s, asked_s)
        self._notify()

    def lose(self) -> None:
        """Another service has taken over, for good."""
        self._lost = True
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self) -> None:
        """Return once it holds: a database that restarts is back soon.

        :raise TakenOver: it is lost, or was not renewed for a minute.
        """
        if self.holds:
            return
        deadline_s = now_s() + _MAX_WAIT_S
        while not self.holds:
            left_s = deadline_s - now_s()
            if self._lost or left_s <= 0:
                self.check()
            try:
                await asyncio.wait_for(self._changed.wait(), max(left_s, 0))
            except TimeoutError:
                continue

    def check(self) -> None:
        """:raise TakenOver: it does not hold."""
        if self._lost:
            raise TakenOver(
                "another service has taken over the hosts of this one",
                remedy="ask that service; `vmtune host list` names it",
            )
        if not self.holds:
            raise TakenOver(
                f"the database has not answered for {self._holds_s:g} s: another service may "
                "have taken over the hosts of this one",
                code="lease_not_renewed",
                remedy="see that the database can be reached",
            )
