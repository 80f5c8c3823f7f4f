"""What the fields of benchmark runs, campaigns, comparisons and published measurements mean."""

from __future__ import annotations

from collections.abc import Mapping

_CAMPAIGN = {
    "cells": "The conditions under which all arms are compared; empty for one.",
    "primary_metric": "The metric that the verdict is about.",
    "margin_percent": "Differences within it do not matter.",
}
_RUN = {"qemu": "Name of the QEMU, see `GET /qemus`; empty for the installed one."}

BENCH_WORDS: Mapping[str, Mapping[str, str]] = {
    "EvidenceView": {
        "trial": "Number of the finalist's trial.",
        "metric": "The goal that is compared.",
        "baseline": "What it is compared with: the default or the current profile.",
    },
    "ResultView": {
        "settings": "The winner's values, by tunable; empty without one.",
        "evidence": "Each finalist compared with each baseline, in each goal.",
        "draft": "The profile made of the winner; null without one.",
    },
    "StudyDetail": {"objective": "What it searches for, in words."},
    "StudyPlan": {"study": "The definition, with defaults filled in."},
    "StudyView": {"objective": "What it searches for, in words."},
    "TrialRunView": {"block": "Number of the block in which it ran."},
    "TrialView": {
        "settings": "Values that it set, by tunable.",
        "finalist": "It is confirmed in fresh runs.",
    },
    "UsedView": {"seconds": "Time of these runs, in seconds."},
    "BlockRecord": {
        "load_ms": "When fio was started; null if it never was.",
        "load_ended_ms": "When fio, or QEMU, had ended; null if fio was never started.",
        "ended_ms": "When the measurement ended.",
        "processes": "What QEMU used of its host, over time.",
        "cpu": "CPU time of QEMU, over time.",
        "pool_forecast": "What the pool model says before the load; null if it was not asked.",
    },
    "BootRecord": {"marks": "The parts of the boot that were reached, in order."},
    "CampaignDetail": _CAMPAIGN,
    "CampaignForecast": {"campaign": "The campaign file as JSON, with defaults filled in."},
    "CampaignView": _CAMPAIGN,
    "Comparison": {
        "equal_share": "The share of these pairs in which neither is better, or it is not known.",
        "converged": "Shares of the values that are not censored; null where no value is.",
        "below_noise_floor": "The estimate is smaller than `noise_floor`; null without one.",
    },
    "ComparisonView": {
        "format": "Marks a comparison's document.",
        "made_at": "When it was computed.",
        "primary_metric": "The metric that the verdict is about.",
        "environments": "The environments of the runs, each once.",
        "differences": "What differs between the environments.",
        "metrics": "The metrics as they were defined then.",
        "cells": "What came out, for each set of conditions.",
        "campaign": "Its name; empty for runs that were put together afterwards.",
        "withheld": "Why there are no verdicts; empty where there are.",
    },
    "CompletionShiftView": {"after": "The share since, 0 to 1."},
    "CpuMark": {"cpu_ms": "That time, in milliseconds."},
    "CpuMarkView": {"cpu_ms": "User and system time of all its threads."},
    "CpuSampleView": {
        "vcpu_ms": "Of the threads that run vCPUs.",
        "migration_ms": "Of the threads of the migration, without parallel channels.",
        "multifd_ms": "Of the threads of parallel channels, which compress, too.",
        "other_ms": "Of all other threads.",
    },
    "Distribution": {
        "count": "How many were timed.",
        "median_us": "The middle time.",
        "p90_us": "90 % took no longer.",
        "p99_us": "99 % took no longer.",
        "most_us": "The longest.",
        "mean_us": "The mean.",
    },
    "Effect": {
        "margin_low": "Effects from here to `margin_high` do not matter.",
        "margin_high": "Effects from `margin_low` to here do not matter.",
        "sure_low": "The estimate lies from here to `sure_high`, whatever values that are rounded "
        "or known only as limits were; null where that has no end, or is the estimate itself.",
        "sure_high": "The upper end of that; null likewise.",
        "differences": "How many differences the estimate is the median of.",
    },
    "EnvironmentView": {"environment": "What the fingerprint stands for."},
    "ForecastView": {
        "noise_reason": "Where `noise_percent` is from.",
        "duration_s": "How long it is likely to take.",
        "duration_reason": "Where `duration_s` is from.",
    },
    "FoundChangeView": {
        "worse": "The values became worse by more than the margin.",
        "found_at": "When it was found.",
        "triaged_by": "Who decided about it last; empty for nobody yet.",
        "triaged_at": "When that was; null for never.",
    },
    "GuestPassView": {
        "worker": "Number of the worker, from 0; one for each vCPU.",
        "written_bytes": "How much memory the pass went over.",
    },
    "LoadRecord": {"processes": "Each of the loads: one for each CPU."},
    "MeasuredScenarioView": {"newest_at": "When the newest run was created."},
    "Medians": {"estimate": "B's median by A's, or minus it where the scale is a difference."},
    "PlannedRunView": {"cell": "Name of the conditions; empty where there is one cell."},
    "PoolForecast": {
        "design": "Design of the coroutine pool in this QEMU.",
        "requests": "Requests that QEMU handles at once, at most.",
        "soft_limit": "Size to which QEMU lets the pool grow, in coroutines.",
        "max_pooled": "Coroutines that are kept when nothing is in flight.",
        "max_maps": "Memory maps of the process, in the worst case.",
    },
    "PrintedChangeView": {
        "printed": "As printed: `+3.3%`.",
        "recomputed": "Computed from the figures, and rounded as the print is.",
        "agrees": "Both are the same.",
    },
    "ProcessSample": {
        "maps": "Its memory maps.",
        "stacks": "Those of them that are coroutines' stacks.",
        "vsz_bytes": "Its address space.",
        "rss_bytes": "What of it is in memory.",
    },
    "ProcessSampleView": {
        "vsz_bytes": "Its address space.",
        "rss_bytes": "What of it is in memory.",
    },
    "PublishedRatioView": {"approximate": "One of the two figures is approximate."},
    "QemuView": {"binary": "The program: a path, or a name on the PATH."},
    "Rates": {
        "a_count": "Runs of A that count towards it.",
        "a_runs": "Runs of A.",
        "b_count": "Runs of B that count towards it.",
        "b_runs": "Runs of B.",
    },
    "GuestIo": {
        "disks": "Number of its virtio-blk disks.",
        "disk_bytes": "Size of each disk.",
    },
    "GuestLatency": {
        "requests": "Requests that were measured.",
        "mean_ns": "Their mean latency in nanoseconds.",
        "min_ns": "The shortest latency in nanoseconds.",
        "max_ns": "The longest latency in nanoseconds.",
    },
    "LatencyBin": {
        "low_ns": "Latencies from so many nanoseconds on.",
        "high_ns": "To below so many.",
        "requests": "How many requests took so long.",
    },
    "OwnMeasurementView": {
        "key": "By which figures name it.",
        "machine": "What it was measured on.",
        "qemu": "Version of QEMU, or versions.",
    },
    "OwnRatioView": {"base": "The arm that its figure is divided by."},
    "ReferenceArmView": {"facts": "What sets it apart from the other arms."},
    "ReferenceRowView": {
        "own_ratios": "Ratios that were measured with vmtune, beside the published ones.",
        "approximate": "The source says so, or the print is rounded.",
        "ratios": "The figure by that of each base.",
    },
    "ReferenceSourceView": {
        "author": "Who published it; empty if unknown.",
        "url": "Where it can be read.",
    },
    "ReferenceSummary": {"tables": "Its tables, without their rows."},
    "ReferenceTableView": {"rows": "The figures."},
    "ReferenceView": {
        "tables": "Figures, a table for each kind.",
        "constants": "Figures that are no measurements.",
    },
    "ResultText": {
        "title": "Title of the metric.",
        "primary": "It is the metric that the verdict is about.",
        "quartiles": "Lower and upper quartile of A and of B; empty for shares.",
        "interval": "The effect's interval.",
        "verdict": "The verdict, in its word.",
        "level": "How often such an interval holds the true effect, at least.",
        "test": "Name of the test.",
        "p": "Its p value.",
        "adjusted_p": "The p value of the verdict among the many.",
        "delta": "Cliff's delta, -1 to 1.",
        "noise_floor": "The effect that this host shows by chance.",
    },
    "RunDetail": _RUN,
    "RunHeadView": {
        "migration_ms": "When the migration was started; null if it never was.",
        "migration_ended_ms": "When it was over; null if it never was started.",
        "ended_ms": "When the record ended.",
        "beat_interval_ms": "How often the guest's heart beats; null without a heartbeat.",
        "totals": "What QEMU reported at the migration's end; null if it did not complete.",
        "reaper": "What the reaper did; null without one.",
        "ring_full_exits": "How often a full ring stopped a vCPU; null if not counted.",
    },
    "RunView": _RUN,
    "ScenarioView": {
        "family": "Name of its family.",
        "family_title": "Title of its family.",
        "applicable": "It can run here.",
    },
    "ScheduleView": {
        "every": "The interval, as people read it.",
        "every_s": "The interval in seconds.",
    },
    "SetupHistoryView": {
        "qemu": "Name of the QEMU, see `GET /qemus`; empty for the installed one.",
        "points": "A value for each run, oldest first.",
        "sign": "An early sign of the next change; null without one.",
    },
    "ShiftView": {"worse": "It matters, and is for the worse."},
    "SignView": {"ratio": "Median of these points by the median before; null if undefined."},
    "SilenceView": {"duration_ms": "How long the gap was."},
    "SlotView": {
        "campaign": "Id of the campaign.",
        "position": "Position in the block, from 1.",
    },
    "SrcuCost": {"vcpus": "How many vCPUs spun."},
    "Summary": {
        "minimum": "The smallest value; null, as the other figures are, where there is no value.",
        "median": "The middle value.",
        "upper_quartile": "Upper quartile, likewise.",
        "maximum": "The largest value.",
    },
    "TableSummary": {"rows": "Number of its figures."},
}
"""By schema and field, as :data:`vmtune.api.field_words.WORDS`."""
