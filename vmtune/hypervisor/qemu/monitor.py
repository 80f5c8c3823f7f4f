"""A QEMU monitor, reached by a QMP socket, libvirt, or a fake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Monitor(Protocol):
    """Executes QMP commands on one QEMU."""

    async def execute(
        self,
        command: str,
        arguments: Mapping[str, Any] | None = None,  # any JSON
    ) -> Any:  # any JSON: the reply's "return"
        """Run one command and return its result.

        Calls that are under way at the same time reach QEMU in the order in which they
        were made: several may be issued without waiting for each other's answers.

        :raise CommandRefused: QEMU's own error text.
        :raise MonitorBusy: another client holds the monitor.
        :raise OutcomeUnknown: the connection was lost before the reply came.
        """
