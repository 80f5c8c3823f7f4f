"""What holds the throughput of a migration: its bandwidth limit, as QEMU keeps it."""

from __future__ import annotations

from collections.abc import Mapping

from vmtune.forecast.bursts import LIMIT_HELD_MS
from vmtune.model.tunables.tunable import Value

HELD_BY_LIMIT = 0.85
"""From this share of its bandwidth limit on, a migration is held by the limit, and says of the path
only that it carries as much."""
LIMITING = ("max_bandwidth_bytes_per_s", "multifd", "multifd_channels")
"""The tunables that decide about it."""
_MULTIFD_PACKET_BYTES = 512 << 10
"""MULTIFD_PACKET_SIZE in migration/multifd.h."""


def channels(values: Mapping[str, Value | None]) -> int:
    """How many channels multifd has with *values*, where they do not say 2 as by QEMU's default; 0
    without multifd."""
    count = values.get("multifd_channels")
    if values.get("multifd") is not True:
        return 0
    return count if isinstance(count, int) else 2


def limit_on_wire(values: Mapping[str, Value | None]) -> float | None:
    """What the bandwidth limit of *values* comes to; None without one.

    With multifd QEMU notices that the limit is reached only when each channel has sent its packet.
    """
    limit = values.get("max_bandwidth_bytes_per_s")
    if not isinstance(limit, int) or limit <= 0:
        return None
    return limit + channels(values) * _MULTIFD_PACKET_BYTES / (LIMIT_HELD_MS / 1000)
