"""The table of metrics: each figure that a benchmark run is reduced to, once.

Results, comparisons, the CLI, the API and plots take names, units and directions from here.
How each is computed from a run's record is in :mod:`vmtune.bench.reduce`; what a metric means,
what begins and what ends it, is said here. A metric that could not be had is missing from a
run, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.metrics import block as metrics_block
from vmtune.bench.model.metrics.boot import BOOT_HEADLINE, BOOT_METRICS, BOOT_SHARE, BOOT_TIME
from vmtune.bench.model.metrics.metric import Direction, Group, Metric, complete
from vmtune.bench.model.metrics.srcu import SRCU_HEADLINE, SRCU_METRICS, SRCU_SHARE, SRCU_TIME
from vmtune.bench.model.runs.run import HostSide
from vmtune.units import Unit

__all__ = ["HEADLINE", "METRICS", "Direction", "Group", "Metric"]

SLOW_FACTOR = 1.25
"""A pass of the guest over its memory is slow when it took more than this times as long as the
median pass of the same worker in the same run's warm-up."""
LEAST_STRETCH_MS = 50
"""A worker's passes that are shorter than this are taken together until they are not: their
reports come a few milliseconds late."""


_NOT_COMPLETED = "unless the migration completed"
_NO_MIGRATION = "when no migration was begun"
_NO_BASELINE = "when no worker of the guest reported twice in warm-up"
_NO_FIGURES = "when QEMU was never seen to send anything"
_BEGUN = "vmtune hands it to QEMU or libvirt, what is set for it on both sides included"
_OVER = "QEMU says that it completed, failed or was cancelled"

_TIME = (
    Metric(
        "total_time_ms", "Total time", Unit.MS, Direction.LOWER, Group.TIME,
        "How long the migration took, as QEMU reports it.",
        "QEMU begins to set it up", "the guest runs on the destination, and in post-copy all of "
        "its memory is there", _NOT_COMPLETED,
    ),
    Metric(
        "elapsed_ms", "Time until its end", Unit.MS, Direction.LOWER, Group.TIME,
        "How long the attempt took however it ended, by vmtune's clock. For one that was "
        "cancelled at a limit, its total time is longer than this by an unknown amount.",
        _BEGUN, _OVER, _NO_MIGRATION,
    ),
    Metric(
        "setup_time_ms", "Setup time", Unit.MS, Direction.LOWER, Group.TIME,
        "Connecting, agreeing, and switching dirty tracking on, as QEMU reports it.",
        "QEMU begins to set it up", "QEMU begins to send memory", _NOT_COMPLETED,
    ),
    Metric(
        "downtime_ms", "Downtime by QEMU", Unit.MS, Direction.LOWER, Group.TIME,
        "How long no QEMU ran the guest at the switchover, as the source reports it. What the "
        "guest really felt is guest_silence_ms.",
        "the source stops the vCPUs for the last time", "the source has handed over: before the "
        "destination runs the guest", _NOT_COMPLETED,
    ),
    Metric(
        "converged", "Completed", Unit.NONE, Direction.HIGHER, Group.TIME,
        "1 when the migration completed, 0 when it failed or the benchmark cancelled it at the "
        "scenario's limit of time or iterations. Over several runs, the share that completed, or "
        "ended as planned. It is judged before every other metric.",
        missing="when a person ended it, or the scenario is meant to end at its limit and did",
    ),
)  # fmt: skip

_GUEST = (
    Metric(
        "guest_silence_ms", "Longest silence of the guest", Unit.MS, Direction.LOWER, Group.GUEST,
        "The longest gap of the guest's heartbeat that touches the migration, by the host's "
        "clock, whichever side was running the guest.",
        "the last beat before the gap arrives", "the first beat after it arrives, or the run "
        "ends without one", "when the guest has no heartbeat, or " + _NO_MIGRATION,
    ),
    Metric(
        "guest_baseline_ms_per_gib", "Guest's own pace", Unit.MS_PER_GIB, Direction.NONE,
        Group.GUEST,
        "The median time that a worker of the guest takes in warm-up to go over 1 GiB of its "
        "memory, by the host's clock, without its rests. Each worker's first report, of passes "
        "that find its memory unused, does not count.",
        missing=_NO_BASELINE,
    ),
    Metric(
        "guest_worst_ms_per_gib", "Guest's slowest pace", Unit.MS_PER_GIB, Direction.LOWER,
        Group.GUEST,
        "The slowest pass of any worker, scaled to 1 GiB, by the host's clock: time in which "
        "the guest stood still counts.",
        "the first pass that ends after the migration was begun", "the end of cool-down; a pass "
        "that had not ended by then counts with what it had taken",
        _NO_BASELINE + " or " + _NO_MIGRATION,
    ),
    Metric(
        "guest_drop_ms", "Time that the guest was slow", Unit.MS, Direction.LOWER, Group.GUEST,
        f"The time in which at least one worker was in a slow pass: one that took more than "
        f"{SLOW_FACTOR:g} times its median of warm-up. Passes shorter than {LEAST_STRETCH_MS} ms "
        "are taken together.",
        "the migration is begun", "the end of cool-down", _NO_BASELINE + " or " + _NO_MIGRATION,
    ),
    Metric(
        "guest_excess_ms", "Time that the guest lost", Unit.MS, Direction.LOWER, Group.GUEST,
        "What all slow passes took beyond their workers' median of warm-up, added up and divided "
        "by the number of workers: the area between the guest's pace and its baseline.",
        "the migration is begun", "the end of cool-down", _NO_BASELINE + " or " + _NO_MIGRATION,
    ),
    Metric(
        "guest_write_mib_per_s", "Guest's write progress", Unit.MIB_PER_S, Direction.HIGHER,
        Group.GUEST,
        "The memory that all workers went over while the migration ran, by the host's clock. A "
        "pass across either end counts by its share of time; one that had not ended with the "
        "record counts as if it had, so that with few and long passes this is an upper bound.",
        _BEGUN, _OVER, "when there was no pass at all, or " + _NO_MIGRATION,
    ),
    Metric(
        "guest_write_share_percent", "Guest's write progress compared with before", Unit.PERCENT,
        Direction.HIGHER, Group.GUEST,
        "guest_write_mib_per_s by the same figure of the second half of this run's warm-up. A "
        "worker that rests after each pass makes up for time lost out of its rests.",
        _BEGUN, _OVER, _NO_BASELINE + " or " + _NO_MIGRATION,
    ),
)  # fmt: skip

_NOT_COUNTED = "where QEMU did not count it: it does for runs without libvirt that have postcopy on"
_POSTCOPY = (
    Metric(
        "postcopy_blocked_ms", "Stood still in post-copy", Unit.MS, Direction.LOWER, Group.GUEST,
        "How long all vCPUs waited at once for pages that were still on the source "
        "(postcopy-blocktime, added up by the destination's QEMU).",
        "the destination runs the guest", "all of its memory is there", _NOT_COUNTED,
    ),
    Metric(
        "postcopy_vcpu_blocked_ms", "Longest wait of a vCPU in post-copy", Unit.MS,
        Direction.LOWER, Group.GUEST,
        "How long the vCPU that waited most waited for pages, in all "
        "(postcopy-vcpu-blocktime).",
        "the destination runs the guest", "all of its memory is there", _NOT_COUNTED,
    ),
    Metric(
        "postcopy_latency_us", "Mean wait for a page in post-copy", Unit.US, Direction.LOWER,
        Group.GUEST,
        "The mean time from a fault to the page's arrival (postcopy-latency).",
        missing=_NOT_COUNTED + "; before QEMU 10.1",
    ),
    Metric(
        "postcopy_latency_p99_us", "99 % of waits for a page in post-copy", Unit.US,
        Direction.LOWER, Group.GUEST,
        "An upper bound of the time within which 99 % of faults had their page: the end of its "
        "bucket, a power of two (postcopy-latency-dist).",
        missing=_NOT_COUNTED + "; before QEMU 10.1",
    ),
)  # fmt: skip

_THREADS = {
    "vcpu": ("vCPU threads", "running the guest, and exits to QEMU"),
    "migration": ("migration threads", "finding and sending memory, and in post-copy receiving "
                  "it; without multifd's own threads"),
    "multifd": ("multifd threads", "sending or receiving, compressing or decompressing; with "
                "compress, its threads"),
    "other": ("other threads", "the main loop, which on the destination receives what comes "
              "without multifd, and workers"),
}  # fmt: skip


_TICK_MS = 10.0
"""The step of CPU times in /proc."""


def _cpu(side: HostSide) -> Iterable[Metric]:
    """CPU time of one side's QEMU, together and by kinds of threads."""
    span = ("the migration is begun", "QEMU on the source says that it is over")
    lack = f"when the {side.value}'s QEMU could not be read in /proc, or {_NO_MIGRATION}"
    yield Metric(
        f"{side.value}_cpu_ms", f"CPU time of the {side.value}", Unit.MS, Direction.LOWER,
        Group.CPU,
        f"User and system time of all threads of the {side.value}'s QEMU while the migration "
        "ran: the guest's own included.",
        *span, lack, _TICK_MS,
    )  # fmt: skip
    for kind, (title, what) in _THREADS.items():
        # A guest that gets more done uses more: its CPU time is no cost.
        direction = Direction.NONE if kind == "vcpu" else Direction.LOWER
        yield Metric(
            f"{side.value}_cpu_{kind}_ms", f"CPU time of the {side.value}'s {title}", Unit.MS,
            direction, Group.CPU,
            f"The part of {side.value}_cpu_ms that its {title} used: {what}.",
            *span, lack, _TICK_MS,
        )  # fmt: skip


_SENDING = Metric(
    "source_send_system_ms_per_gib", "System time of sending", Unit.MS_PER_GIB, Direction.LOWER,
    Group.CPU,
    "The system time of the source's migration and multifd threads by what was sent: the kernel's "
    "work for them, most of it sendmsg, which zero-copy makes less. Stepped by 10 ms for each "
    "thread; what a thread used after the last look at it is missing.",
    "the migration is begun", "QEMU on the source says that it is over",
    "unless the migration completed, and when the source's QEMU could not be read in /proc",
)  # fmt: skip
_NO_SENDS = "where the source's QEMU does not count its sends: the patched one does"
_SENDS = (
    Metric(
        "sendmsg_cpu_ms_per_gib", "CPU time of sendmsg", Unit.MS_PER_GIB, Direction.LOWER,
        Group.CPU,
        "The CPU time of the sendmsg calls of the threads that send, by what they sent: what "
        "zero-copy saves.",
        "the migration is begun", _OVER, _NO_SENDS,
    ),
    Metric(
        "sendmsg_ms_per_gib", "Time in sendmsg", Unit.MS_PER_GIB, Direction.LOWER, Group.CPU,
        "How long these calls took, added up over the threads, by what they sent. A thread that "
        "waits for room in its socket is in the call.",
        "the migration is begun", _OVER, _NO_SENDS,
    ),
    Metric(
        "sends", "Calls of sendmsg", Unit.COUNT, Direction.NONE, Group.TRANSFER,
        "How many of these calls sent something.",
        "the migration is begun", _OVER, _NO_SENDS,
    ),
    Metric(
        "zero_copy_flush_ms", "Time in flushes of zero-copy", Unit.MS, Direction.LOWER,
        Group.TRANSFER,
        "How long QEMU waited, channel by channel, until the kernel was done with what zero-copy "
        "had sent: at the end of each iteration.",
        "the migration is begun", _OVER, "without zero-copy sends, and " + _NO_SENDS,
    ),
    Metric(
        "zero_copy_copied_percent", "Zero-copy sends that were copied", Unit.PERCENT,
        Direction.LOWER, Group.TRANSFER,
        "The share of zero-copy sends that the kernel copied all the same: all of them on loopback "
        "and veth. It tells so at the flush.",
        "the migration is begun", _OVER, "without zero-copy sends, and " + _NO_SENDS,
    ),
)  # fmt: skip
_TRANSFER = (
    Metric(
        "transferred_bytes", "Sent", Unit.BYTES, Direction.LOWER, Group.TRANSFER,
        "What the migration put on the network, as QEMU counts it. Where it did not complete, "
        "as far as the last look saw it.",
        "QEMU begins to send", _OVER, _NO_FIGURES,
    ),
    Metric(
        "iterations", "Iterations", Unit.COUNT, Direction.LOWER, Group.TRANSFER,
        "How often QEMU collected what had become dirty, the first and the last included.",
        missing=_NO_FIGURES,
    ),
    Metric(
        "throughput_bytes_per_s", "Mean throughput", Unit.BYTES_PER_S, Direction.HIGHER,
        Group.TRANSFER,
        "transferred_bytes by the time of sending: total_time_ms without setup_time_ms, or, "
        "where it did not complete, the time from the first look that saw QEMU send to the last.",
        "QEMU begins to send", _OVER, _NO_FIGURES,
    ),
    Metric(
        "missed_zero_copy", "Zero-copy fallbacks", Unit.COUNT, Direction.LOWER, Group.TRANSFER,
        "How often QEMU found that the kernel had copied although it was asked not to. Read it "
        "as none or some: how often it is counted depends on QEMU's version.",
        missing="unless zero_copy_send was on, and " + _NO_FIGURES,
    ),
)  # fmt: skip

_CONTROL = (
    Metric(
        "throttle_max_percent", "Most throttle", Unit.PERCENT, Direction.LOWER, Group.CONTROL,
        "The largest share of time for which auto-converge stopped the vCPUs.",
        missing="unless auto_converge was on, and " + _NO_FIGURES,
    ),
    Metric(
        "dirty_limit_throttle_ms", "Most time held back by the dirty limit", Unit.MS,
        Direction.LOWER, Group.CONTROL,
        "The longest time in one round for which dirty_limit held back the vCPU that writes "
        "most (QEMU's dirty-limit-throttle-time-per-round).",
        missing="unless dirty_limit was on, and " + _NO_FIGURES,
    ),
    Metric(
        "dirty_limit_ring_full_ms", "Time to fill a ring under the dirty limit", Unit.MS,
        Direction.NONE, Group.CONTROL,
        "The longest that QEMU expected a vCPU to need to fill its ring "
        "(dirty-limit-ring-full-time).",
        missing="unless dirty_limit was on, and " + _NO_FIGURES,
    ),
    Metric(
        "ring_full_exits", "Ring-full exits", Unit.COUNT, Direction.LOWER, Group.CONTROL,
        "How often a vCPU of the source left the guest because its dirty ring was full.",
        "the migration is begun", _OVER, "where they were not counted",
    ),
    Metric(
        "reaper_rounds", "Rounds of the reaper", Unit.COUNT, Direction.NONE, Group.CONTROL,
        "How often vmtune emptied the dirty rings for this migration.",
        "before the migration is begun", "the migration is over", "without a reaper",
    ),
)  # fmt: skip


MIGRATION_METRICS: Mapping[str, Metric] = complete(
    (
        *_TIME,
        *_GUEST,
        *_POSTCOPY,
        *_cpu(HostSide.SOURCE),
        _SENDING,
        *_SENDS,
        *_cpu(HostSide.DESTINATION),
        *_TRANSFER,
        *_CONTROL,
    )
)
"""Those of the migration benchmark."""

METRICS_OF: Mapping[ScenarioKind, Mapping[str, Metric]] = {
    ScenarioKind.MIGRATION: MIGRATION_METRICS,
    ScenarioKind.BLOCK: metrics_block.METRICS,
    ScenarioKind.BOOT: complete(BOOT_METRICS),
    ScenarioKind.SRCU: complete(SRCU_METRICS),
}
"""Every metric by name, of each kind of benchmark."""
assert set(METRICS_OF) == set(ScenarioKind)

METRICS: Mapping[str, Metric] = complete(
    row for table in METRICS_OF.values() for row in table.values()
)
"""Every metric by name, in the order in which people should read them."""

PRIMARY: Mapping[ScenarioKind, str] = {
    ScenarioKind.MIGRATION: "total_time_ms",
    ScenarioKind.BLOCK: "iops",
    ScenarioKind.BOOT: BOOT_TIME,
    ScenarioKind.SRCU: SRCU_TIME,
}
"""The default primary metric of a verdict."""
assert all(name in METRICS_OF[kind] for kind, name in PRIMARY.items())
assert set(PRIMARY) == set(ScenarioKind)

SUCCESS: Mapping[ScenarioKind, str] = {
    ScenarioKind.MIGRATION: "converged",
    ScenarioKind.BLOCK: metrics_block.LOAD_SHARE,
    ScenarioKind.BOOT: BOOT_SHARE,
    ScenarioKind.SRCU: SRCU_SHARE,
}
"""The metric that says whether a run succeeded: judged before all others."""
assert all(name in METRICS_OF[kind] for kind, name in SUCCESS.items())
assert set(SUCCESS) == set(ScenarioKind)

HEADLINE = (
    "total_time_ms",
    "downtime_ms",
    "guest_silence_ms",
    "guest_write_share_percent",
    "source_cpu_ms",
    "transferred_bytes",
    "iterations",
    *metrics_block.HEADLINE,
    *BOOT_HEADLINE,
    *SRCU_HEADLINE,
)
"""The few that a table of runs shows first; a run has those of its kind."""
assert set(HEADLINE) <= METRICS.keys()


def judged_metrics(kind: ScenarioKind) -> tuple[str, ...]:
    """The metrics of a kind that a verdict can be about."""
    return tuple(
        name for name, metric in METRICS_OF[kind].items() if metric.direction is not Direction.NONE
    )
