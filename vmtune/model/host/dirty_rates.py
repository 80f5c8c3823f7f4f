"""What QEMU says of its vCPUs' dirty rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class DirtyRates:
    """query-dirty-rate, read into fields.

    :param measured: whether the last measurement has ended. QEMU says ``unstarted`` for a
        moment after it was told to begin, and that counts as not ended.
    :param measuring: whether one is under way.
    :param measured_ms: the time that QEMU really measured, by which it divided the pages; more
        than was asked for.
    :param vcpu_mib_per_s: whole MiB/s of each vCPU, rounded down; empty unless it was measured
        in the mode ``dirty-ring``.
    """

    measured: bool
    measuring: bool = False
    measured_ms: int = 0
    vcpu_mib_per_s: tuple[int, ...] = ()


def read_query_dirty_rate(reply: Mapping[str, Any]) -> DirtyRates:  # any JSON: the QMP reply
    """A reply of QMP's query-dirty-rate that was asked for in milliseconds."""
    status = reply.get("status")
    if status != "measured":
        return DirtyRates(measured=False, measuring=status == "measuring")
    rows = sorted(reply.get("vcpu-dirty-rate", ()), key=lambda row: int(row["id"]))
    rates = tuple(int(row["dirty-rate"]) for row in rows)
    return DirtyRates(measured=True, measured_ms=reply.get("calc-time", 0), vcpu_mib_per_s=rates)
