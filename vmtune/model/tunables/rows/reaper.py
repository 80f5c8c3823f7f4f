"""Rows of the dirty-ring reaper, which vmtune itself runs during a migration."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from vmtune.model.tunables.tunable import Kind, Route, Side, Tunable, Value
from vmtune.model.versions import Version
from vmtune.units import Unit

OFF = "off"
MIN_INTERVAL_MS = 50
"""The shortest time that calc-dirty-rate measures, QEMU 8.2 and later (migration/dirtyrate.c)."""
MAX_INTERVAL_MS = 60_000
"""The longest."""
STOCK_INTERVAL_MS = 1000
"""How long QEMU's own reaper sleeps (accel/kvm/kvm-all.c, QEMU 6.1 to 10.0)."""
TARGET_FILL_PERCENT = 60
_SINCE = Version(8, 2)

ALONE_AT_THE_RINGS: Mapping[str, Value] = MappingProxyType(
    {"reaper_policy": OFF, "qemu_reaper_policy": "stock", "dirty_limit": False}
)
"""What acts through the dirty rings, with the value at which it does not: only one at a time may.
The reapers keep the rings from filling, by which dirty_limit throttles; two reapers find the rings
emptied by each other. ``qemu_reaper_policy`` is of the pack qemu-patched."""
REAPERS = ("reaper_policy", "qemu_reaper_policy")
"""Those that empty the rings: from outside, and inside a patched QEMU."""


class ReaperPolicy(StrEnum):
    """Who decides how long to wait before the rings are emptied again."""

    PREDICT = "predict"
    LEVELS = "levels"
    AIMD = "aimd"


REAPER = (
    Tunable(
        "reaper_policy", "Dirty-ring reaper",
        "Empties the vCPUs' dirty rings from outside while the VM migrates, as often as the guest "
        "writes: QEMU itself does it once a second, and a vCPU whose ring is full stands still. "
        "predict aims at a fill; levels and aimd are the policies that were proposed for QEMU. "
        "Needs KVM with a dirty ring; excludes dirty_limit, which acts through full rings.",
        Kind.CHOICE, Route.CONTROL, Side.SOURCE, default=OFF,
        choices=(OFF, *(policy.value for policy in ReaperPolicy)), since=_SINCE,
    ),
    Tunable(
        "reaper_min_interval_ms", "Minimum reaper interval",
        "The reaper never empties the rings more often, however fast they fill.",
        Kind.INTEGER, Route.CONTROL, Side.SOURCE, Unit.MS, MIN_INTERVAL_MS,
        MIN_INTERVAL_MS, MAX_INTERVAL_MS, since=_SINCE,
    ),
    Tunable(
        "reaper_max_interval_ms", "Maximum reaper interval",
        "The reaper never empties the rings less often, however idle the guest is.",
        Kind.INTEGER, Route.CONTROL, Side.SOURCE, Unit.MS, STOCK_INTERVAL_MS,
        MIN_INTERVAL_MS, MAX_INTERVAL_MS, since=_SINCE,
    ),
    Tunable(
        "reaper_target_fill_percent", "Target fill of the rings",
        "How full the policy predict lets the fullest ring become; the rest is for bursts.",
        Kind.INTEGER, Route.CONTROL, Side.SOURCE, Unit.PERCENT, TARGET_FILL_PERCENT, 10, 90,
        since=_SINCE,
    ),
)  # fmt: skip
