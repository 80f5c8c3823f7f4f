"""What QEMU says of its vCPUs' dirty rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Linux include/linux/kvm_host.h (KVM_DIRTY_RING_RSVD_ENTRIES) and, where the CPU has page
# modification logging, its buffer (PML_LOG_NR_ENTRIES): the vCPU leaves the guest that many
# entries before the ring is really full. Without PML it is only the first.
_RESERVED_ENTRIES = 64 + 512


@dataclass(frozen=True, slots=True)
class DirtyPoint:
    """What was dirty *after_ms* milliseconds after all had been clean."""

    after_ms: float
    dirty_bytes: float


@dataclass(frozen=True, slots=True)
class DirtyRates:
    """query-dirty-rate, read into fields.

    :param measured: whether the last measurement has ended. QEMU says ``unstarted`` for a moment
        after the start command; that counts as not ended.
    :param measuring: whether one is under way.
    :param measured_ms: the time that QEMU really measured, by which it divided the pages; more than
        was requested.
    :param vcpu_mib_per_s: whole MiB/s of each vCPU, rounded down; empty unless it was measured
        in the mode ``dirty-ring``.
    """

    measured: bool
    measuring: bool = False
    measured_ms: int = 0
    vcpu_mib_per_s: tuple[int, ...] = ()


def read_query_dirty_rate(reply: Mapping[str, Any]) -> DirtyRates:  # any JSON: the QMP reply
    """A reply of QMP's query-dirty-rate, requested in milliseconds."""
    status = reply.get("status")
    if status != "measured":
        return DirtyRates(measured=False, measuring=status == "measuring")
    rows = sorted(reply.get("vcpu-dirty-rate", ()), key=lambda row: int(row["id"]))
    rates = tuple(int(row["dirty-rate"]) for row in rows)
    return DirtyRates(measured=True, measured_ms=reply.get("calc-time", 0), vcpu_mib_per_s=rates)


def read_sampled(reply: Mapping[str, Any], unit_ms: int) -> DirtyPoint | None:
    """What the guest changed, of a reply of query-dirty-rate in the mode ``page-sampling``; None
    while it is measured. QEMU says whole MiB/s, rounded down: so a half is added to what is not 0.

    :param unit_ms: of the times in the reply, in milliseconds.
    """
    if reply.get("status") != "measured":
        return None
    after_ms = reply["calc-time"] * unit_ms
    rate = reply["dirty-rate"]
    return DirtyPoint(after_ms, (rate + 0.5 if rate else 0) * (1 << 20) * after_ms / 1000)


def usable_entries(ring_entries: int) -> int:
    """Entries of a ring that can be used before its vCPU has to leave the guest.

    The kernel keeps 64 in reserve, and 512 more where the CPU logs page modifications in
    hardware. Whether it does cannot be asked of QEMU, so the smaller ring is assumed. The
    smallest ring, 1024, has 448 usable entries: less than half.
    """
    return max(1, ring_entries - _RESERVED_ENTRIES)
