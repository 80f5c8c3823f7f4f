"""A run as a report of QEMU's guestperf, so that its own tools can show it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vmtune.bench.guestperf.extras import patched
from vmtune.bench.guestperf.format import Document, Form, in_form
from vmtune.bench.migration.families import GUESTPERF_NAMES
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.runs.run import CpuSample, HostSide, Run, RunRecord, RunState
from vmtune.bench.model.scenario.migration import nearest_power_of_two
from vmtune.bench.model.scenario.parts import GIB, MIB
from vmtune.errors import InvalidInput
from vmtune.model.migration.record import Sample
from vmtune.model.migration.steps import AfterIterations, Step, StepAction, parse_steps
from vmtune.model.tunables.built_in import BUILT_IN

KEPT = "guestperf"
"""Where an imported run keeps what it has no place for, among its options."""
SPARE_MIB = 512
"""Memory that guestperf gives a VM besides what its stress writes to."""
_OUR_NAMES = {ours: theirs for theirs, ours in GUESTPERF_NAMES.items()}
_CACHE_PERCENTS = (5, 10, 20, 50)
_STATUS = {
    RunState.COMPLETED: "completed",
    RunState.FAILED: "failed",
}


def export_report(run: Run, form: Form | None = None) -> str:
    """*run* as guestperf's JSON. An imported one comes out as it went in.

    What guestperf cannot hold is left out:

    - of the run: its id, profile, campaign, environment, conditions, metrics, failure and what
      was read back of its tunables; tunables other than the bandwidth and downtime limits,
      auto-converge's step, post-copy, multifd with its channels and compression, multi-thread
      compression, XBZRLE and the dirty limit; convergence steps other than one pause and one
      switch to post-copy after so many iterations (which guestperf counts from 1);
    - of its VM and guest: memory that is no whole number of GiB (it is rounded up), the stride,
      the dirty rate, the content of pages, the heartbeat;
    - of its record: the destination's CPU time, and the source's by kinds of threads (all vCPUs
      are one thread, 0); the silences, rounds of the reaper, steps and ring-full exits; all
      looks at the migration but the first of each iteration and the last; multifd's and
      post-copy's bytes, and zero-copy's fallbacks; the time of day more exactly than a second;
    - of a pass: how much memory it went over (its time is scaled to 1 GiB), the guest's own
      clock, and microseconds.

    :param form: None: as it was imported, the new one where it was not.
    :raise InvalidInput: the run has not ended: there is nothing to export; or it is no migration.
    """
    if run.kind is not ScenarioKind.MIGRATION:
        raise InvalidInput(
            f"guestperf knows migrations only, and the run is a {run.kind}",
            field="format",
            code="not_for_kind",
            remedy="export it as json or csv.gz",
        )
    if run.record is None:
        raise InvalidInput(
            "the run has no record",
            field="run",
            code="no_record",
            remedy="export it when it has ended",
        )
    report = patched(regenerated(run, run.record), run.options.get(KEPT, {}).get("patch"))
    return json.dumps(in_form(report, form) if form else report, indent=4)


def regenerated(run: Run, record: RunRecord) -> Document:
    """The report that is made of a run, without what it keeps for guestperf, in the new form."""
    kept = run.options.get(KEPT, {})
    start_s = start_of(run)
    tids: Mapping[str, Any] = kept.get("tids", {})
    source = [sample for sample in record.cpu if sample.side is HostSide.SOURCE]
    return in_form(
        {
            "hardware": _hardware(run),
            "scenario": _scenario(run),
            "progress_history": _progress(run, record, start_s),
            "guest_timings": _guest_timings(record, start_s, tids.get("guest", [])),
            "qemu_timings": [
                _timing(tids.get("qemu", 0), start_s, s.at_ms, s.total_ms) for s in source
            ],
            "vcpu_timings": _vcpu_timings(source, start_s, tids.get("vcpu", 0)),
            "result": {"success": run.state is RunState.COMPLETED and _pause(run) is None},
            "binary": _binary(run),
            "transport": run.setup.get("transport", "tcp"),
            "sleep": run.setup.get("warmup_s", 0),
        },
        Form.NEW,
    )


def _binary(run: Run) -> str:
    """The path of the program; of an imported run what the report named."""
    known = run.environment.get("qemu", {}).get("path")
    return str(known or run.qemu or "qemu-system-x86_64")


def start_of(run: Run) -> int:
    """The second at which the run's timeline began."""
    return int((run.started_at or run.created_at).timestamp())


def _hardware(run: Run) -> Document:
    vm: Mapping[str, int] = run.setup.get("vm", {})
    spare = SPARE_MIB * MIB
    memory = vm.get("memory_bytes", GIB)
    return {
        "cpus": vm.get("vcpus", 1),
        "mem": max(1, -(-(memory - spare) // GIB)),
        "dirty_ring_size": run.values.get("dirty_ring_size_entries", 0),
    }


def _scenario(run: Run) -> Document:
    values = run.values

    def number(name: str, otherwise: int) -> int:
        return int(values.get(name, otherwise))

    def default(name: str) -> int:
        return int(BUILT_IN[name].default or 0)

    gib = int(_hardware(run)["mem"])
    cache = number("xbzrle_cache_size_bytes", default("xbzrle_cache_size_bytes"))
    bandwidth = number("max_bandwidth_bytes_per_s", default("max_bandwidth_bytes_per_s"))
    pause, postcopy = _pause(run), _iterations_before(run, StepAction.POSTCOPY)
    made: Document = {
        "name": _OUR_NAMES.get(run.scenario, run.scenario),
        "downtime": number("downtime_limit_ms", default("downtime_limit_ms")),
        "bandwidth": round(bandwidth / MIB),
        "max_iters": run.setup.get("max_iterations", 30),
        "max_time": run.setup.get("max_seconds", 300),
        "pause": pause is not None,
        "post_copy": values.get("postcopy") is True,
    }
    if pause is not None:
        made["pause_iters"] = pause
    if postcopy is not None:
        made["post_copy_iters"] = postcopy
    used: dict[str, Document] = {
        "auto_converge": {"auto_converge_step": number("cpu_throttle_increment_percent", 10)},
        "compress": {"compression_mt_threads": number("compress_threads",
                                                      default("compress_threads"))},
        "xbzrle": {"compression_xbzrle_cache": _cache_percent(cache, gib * GIB)},
        "multifd": {
            "multifd_channels": number("multifd_channels", default("multifd_channels")),
            "multifd_compression": _compression(run),
        },
        "dirty_limit": {
            "x_vcpu_dirty_limit_period": number("vcpu_dirty_limit_period_ms", 1000),
            "vcpu_dirty_limit": number("vcpu_dirty_limit_mib_per_s", 1),
        },
    }  # fmt: skip
    for switch, settings in used.items():
        if values.get(switch) is True:
            made |= {SWITCHES[switch]: True, **settings}
    return made


SWITCHES = {
    "auto_converge": "auto_converge",
    "compress": "compression_mt",
    "xbzrle": "compression_xbzrle",
    "multifd": "multifd",
    "dirty_limit": "dirty_limit",
    "postcopy": "post_copy",
}
"""Our names of what guestperf can switch on, and its own."""


def _cache_percent(cache_bytes: int, memory_bytes: int) -> int:
    """The requested share, where it is one of guestperf's own: each is rounded to a
    power of two."""
    for percent in _CACHE_PERCENTS:
        if nearest_power_of_two(memory_bytes * percent // 100) == cache_bytes:
            return percent
    return min(100, round(100 * cache_bytes / memory_bytes))


def _compression(run: Run) -> str:
    method = str(run.values.get("multifd_compression", "none"))
    return "" if method == "none" else method


def _pause(run: Run) -> int | None:
    return _iterations_before(run, StepAction.PAUSE)


def _iterations_before(run: Run, action: StepAction) -> int | None:
    """After how many iterations, as guestperf counts, *action* is done; None where it is not."""
    try:
        steps: Sequence[Step] = parse_steps(run.setup.get("steps", ()))
    except InvalidInput:  # a setup of another version of vmtune
        return None
    for step in steps:
        if step.action is action and isinstance(step.trigger, AfterIterations):
            return step.trigger.iterations + 1  # it counts the one that is under way
    return None


def _timing(tid: int, start_s: int, at_ms: float, value: float) -> Document:
    return {"tid": tid, "timestamp": start_s + at_ms / 1000, "value": value}


def _vcpu_timings(source: Sequence[CpuSample], start_s: int, tid: int) -> list[Document]:
    return [_timing(tid, start_s, sample.at_ms, sample.vcpu_ms) for sample in source]


def _guest_timings(record: RunRecord, start_s: int, tids: Sequence[int]) -> list[Document]:
    """Each pass's time, scaled to 1 GiB."""
    threads = dict(enumerate(tids))
    return [
        _timing(
            threads.get(each.worker, each.worker),
            start_s,
            each.at_ms,
            round(each.duration_us * GIB / each.written_bytes / 1000),
        )
        for each in record.passes
        if each.written_bytes > 0
    ]


def _progress(run: Run, record: RunRecord, start_s: int) -> list[Document]:
    """The first look of each iteration, and how it ended."""
    begun = record.migration_ms or 0
    totals = record.totals
    setup = (totals.setup_time_ms if totals else None) or 0
    entries: list[Document] = []
    iteration = -1
    for sample in record.samples:
        if sample.status.running and sample.iteration > iteration:
            iteration = sample.iteration
            entries.append(_entry(sample, start_s, sample.at_ms - begun, setup))
    if record.migration_ended_ms is None:
        return entries
    last = record.samples[-1] if record.samples and run.state is RunState.COMPLETED else None
    ram = _ram(last) if last else _ram(None)
    if totals is not None:
        ended = {"transferred_bytes": totals.transferred_bytes, "iterations": totals.iterations}
        ram |= {**ended, "remaining_bytes": 0, "dirty_rate_pps": 0}
    entries.append(
        {
            "status": _STATUS.get(run.state, "cancelled"),
            "ram": ram,
            "now": start_s + record.migration_ended_ms / 1000,
            "duration": totals.total_time_ms if totals else record.migration_ended_ms - begun,
            "downtime": totals.downtime_ms if totals else 0,
            "downtime_expected": 0,
            "setup_time": setup,
            "throttle_pcent": 0,
        }
    )
    return entries


def _entry(sample: Sample, start_s: int, duration_ms: int, setup_ms: int) -> Document:
    return {
        "status": sample.status.value,
        "ram": _ram(sample),
        "now": start_s + sample.at_ms / 1000,
        "duration": duration_ms,
        "downtime": 0,
        "downtime_expected": sample.expected_downtime_ms or 0,
        "setup_time": setup_ms,
        "throttle_pcent": sample.throttle_percent,
        "dirty_limit_throttle_time_per_round": sample.dirty_limit_throttle_us,
        "dirty_limit_ring_full_time": sample.dirty_limit_ring_full_us,
    }


def _ram(sample: Sample | None) -> Document:
    """guestperf has zeros where QEMU says nothing of memory."""
    if sample is None:
        return dict.fromkeys(
            ("transferred_bytes", "remaining_bytes", "total_bytes", "duplicate_pages",
             "skipped_pages", "normal_pages", "normal_bytes", "dirty_rate_pps",
             "transfer_rate_mbs", "iterations"), 0,
        )  # fmt: skip
    return {
        "transferred_bytes": sample.transferred_bytes,
        "remaining_bytes": sample.remaining_bytes,
        "total_bytes": sample.total_bytes,
        "duplicate_pages": sample.zero_pages,
        "skipped_pages": 0,
        "normal_pages": sample.normal_pages,
        "normal_bytes": sample.normal_pages * sample.page_size_bytes,
        "dirty_rate_pps": sample.dirty_pages_per_s,
        "transfer_rate_mbs": sample.throughput_bytes_per_s * 8 / 1e6,
        "iterations": sample.iteration,
    }
