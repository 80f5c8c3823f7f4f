"""For how long this service may change what its hosts run, without asking the database again."""

from __future__ import annotations

import asyncio
import time

from vmtune.errors import TakenOver

HOLDS_S = 10.0
"""Others take nothing over before a service was silent for longer: see services.fleet."""
_WAITS_S = 60.0


def now_s() -> float:
    """A clock that is never set, and that counts while the machine is suspended (s)."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """Implements :class:`vmtune.hypervisor.guard.Guard`. Its methods belong to the event loop, but
    for :meth:`check`."""

    def __init__(self, holds_s: float = HOLDS_S) -> None:
        self._holds_s = holds_s
        self._renewed_s = -holds_s
        self._lost = False
        self._news = asyncio.Event()

    @property
    def holds(self) -> bool:
        """Whether it was renewed lately."""
        return not self._lost and now_s() - self._renewed_s < self._holds_s

    def renew(self, asked_s: float) -> None:
        """The database has confirmed it.

        :param asked_s: when it was asked, by :func:`now_s`: it may have answered much later.
        """
        self._renewed_s = max(self._renewed_s, asked_s)
        self._tell()

    def lose(self) -> None:
        """Another service has taken over, for good."""
        self._lost = True
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def wait(self) -> None:
        """Return once it holds: a database that restarts is back soon.

        :raise TakenOver: it is lost, or was not renewed for a minute.
        """
        if self.holds:
            return
        give_up_s = now_s() + _WAITS_S
        while not self.holds:
            left_s = give_up_s - now_s()
            if self._lost or left_s <= 0:
                self.check()
            try:
                await asyncio.wait_for(self._news.wait(), max(left_s, 0))
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
