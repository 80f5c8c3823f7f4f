"""QEMU's tree of objects, over any monitor."""

from __future__ import annotations

from typing import Any

from vmtune.errors import CommandRefused
from vmtune.hypervisor.qemu.monitor import Monitor


async def children_of(monitor: Monitor, path: str) -> list[dict[str, Any]]:  # any JSON
    """What is in a folder of QEMU's objects, which 7.2 makes when something is put there.

    :raise VmtuneError: as :meth:`Monitor.execute` does, but for a refusal: nothing is there.
    """
    try:
        children: list[dict[str, Any]] = await monitor.execute("qom-list", {"path": path})
    except CommandRefused:
        return []
    return children
