"""The metrics of the benchmark of updates of memory maps: rows as
:mod:`vmtune.bench.model.metrics.metric` has them.

docs/how-to/measure-boot.md says what is timed.
"""

from __future__ import annotations

from vmtune.bench.model.metrics.metric import Direction, Group, Metric
from vmtune.units import Unit

_NEVER = "unless updates were timed"
_BEGINS, _ENDS = "the ioctl KVM_SET_USER_MEMORY_REGION is called", "it returns"

SRCU_METRICS = (
    Metric(
        "grace_period_us", "One SRCU grace period", Unit.US, Direction.LOWER, Group.UPDATES,
        "A third of the median addition and the median deletion of a memory slot together, while "
        "the vCPUs spin: an addition waits for one grace period, a deletion for two. All else "
        "that an update takes is part of it.",
        missing=_NEVER,
    ),
    Metric(
        "srcu_boot_ms", "9,000 grace periods", Unit.MS, Direction.LOWER, Group.UPDATES,
        "What the 9,000 grace periods of the published boot take here, each as long as "
        "grace_period_us.",
        missing=_NEVER,
    ),
    Metric(
        "srcu_boot_mean_ms", "9,000 grace periods at the mean", Unit.MS, Direction.LOWER,
        Group.UPDATES,
        "Likewise at the mean: with what the host's other work adds.",
        missing=_NEVER,
    ),
    Metric(
        "slot_add_us", "Adding a slot", Unit.US, Direction.LOWER, Group.UPDATES,
        "The median time of an addition.", _BEGINS, _ENDS, _NEVER,
    ),
    Metric(
        "slot_add_p99_us", "Adding a slot, 99 %", Unit.US, Direction.LOWER, Group.UPDATES,
        "99 % of additions took no longer.", _BEGINS, _ENDS, _NEVER,
    ),
    Metric(
        "slot_delete_us", "Deleting a slot", Unit.US, Direction.LOWER, Group.UPDATES,
        "The median time of a deletion.", _BEGINS, _ENDS, _NEVER,
    ),
    Metric(
        "slot_delete_p99_us", "Deleting a slot, 99 %", Unit.US, Direction.LOWER, Group.UPDATES,
        "99 % of deletions took no longer.", _BEGINS, _ENDS, _NEVER,
    ),
    Metric(
        "idle_grace_period_us", "One grace period, no vCPU runs", Unit.US, Direction.LOWER,
        Group.UPDATES,
        "As grace_period_us, before any vCPU ran.",
        missing=_NEVER,
    ),
    Metric(
        "srcu_elapsed_ms", "Time of the run", Unit.MS, Direction.NONE, Group.UPDATES,
        "How long all of it took.",
        "the program that makes the VM is started", "it has ended", _NEVER,
    ),
    Metric(
        "updates_timed", "All updates timed", Unit.NONE, Direction.HIGHER, Group.UPDATES,
        "1 when all updates that were asked for were timed, 0 when the scenario's limit came "
        "first. Over several runs, the share.",
        missing="when a person ended it",
    ),
)  # fmt: skip
"""In the order in which people should read them."""

SRCU_HEADLINE = ("grace_period_us", "srcu_boot_ms", "slot_add_p99_us")
"""The few that a table of runs shows first."""
SRCU_TIME, SRCU_SHARE = "grace_period_us", "updates_timed"
