"""Rows of the table of tunables for what vmtune itself does during a migration.

The bounds are those of QEMU's calc-dirty-rate, 8.2 and later (migration/dirtyrate.c): 50 ms to
60 s. QEMU's own reaper sleeps a second (accel/kvm/kvm-all.c).
"""

from __future__ import annotations

from vmtune.model.tunables.tunable import Kind, Route, Side, Tunable
from vmtune.model.versions import Version
from vmtune.units import Unit

OFF = "off"
_SINCE = Version(8, 2)

REAPER = (
    Tunable(
        "reaper_policy", "Dirty-ring reaper",
        "Empties the vCPUs' dirty rings from outside while the VM migrates, as often as the guest "
        "writes: QEMU itself does it once a second, and a vCPU whose ring is full stands still. "
        "predict aims at a fill; levels and aimd are the policies that were proposed for QEMU. "
        "Needs KVM with a dirty ring; excludes dirty_limit, which acts through full rings.",
        Kind.CHOICE, Route.CONTROL, Side.SOURCE, default=OFF,
        choices=(OFF, "predict", "levels", "aimd"), since=_SINCE,
    ),
    Tunable(
        "reaper_least_interval_ms", "Least reaper interval",
        "The reaper never empties the rings more often, however fast they fill.",
        Kind.INTEGER, Route.CONTROL, Side.SOURCE, Unit.MS, 50, 50, 60_000, since=_SINCE,
    ),
    Tunable(
        "reaper_most_interval_ms", "Most reaper interval",
        "The reaper never empties the rings less often, however idle the guest is.",
        Kind.INTEGER, Route.CONTROL, Side.SOURCE, Unit.MS, 1000, 50, 60_000, since=_SINCE,
    ),
    Tunable(
        "reaper_target_fill_percent", "Target fill of the rings",
        "How full the policy predict lets the fullest ring become; the rest is for bursts.",
        Kind.INTEGER, Route.CONTROL, Side.SOURCE, Unit.PERCENT, 60, 10, 90, since=_SINCE,
    ),
)  # fmt: skip
