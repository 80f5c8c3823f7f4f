"""Whether this service may still change anything, asked just before each change is sent.

If several services share the work, each manages its hosts on a lease. One that was stopped for
a while (SIGSTOP, a suspended machine, a database out of reach) may have lost it without knowing.
"""

from __future__ import annotations

from typing import Protocol


class Guard(Protocol):
    """Lets changes through while the lease holds."""

    async def wait(self) -> None:
        """Return once the lease holds.

        :raise TakenOver: it is lost, or was not renewed for too long.
        """

    def check(self) -> None:
        """The last look, from any thread, with nothing between it and the sending.

        :raise TakenOver: it does not hold right now.
        """


class Open:
    """The guard of a service that shares no hosts."""

    async def wait(self) -> None:
        """It always holds."""

    def check(self) -> None:
        """Likewise."""


OPEN = Open()
ASKS = ("query-", "qom-get", "qom-list", "qmp_capabilities")
"""How commands begin that change nothing."""
