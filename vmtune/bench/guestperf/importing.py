"""A report of QEMU's guestperf as a run. Pure."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from vmtune.bench.guestperf.exporting import KEPT, SPARE_MIB, SWITCHES, regenerated
from vmtune.bench.guestperf.extras import patch_between
from vmtune.bench.guestperf.format import SCENARIO, Document, read_report
from vmtune.bench.migration.families import GUESTPERF_NAMES, SCENARIOS
from vmtune.bench.model.runs.run import (
    CpuSample,
    GuestPass,
    HostSide,
    Run,
    RunRecord,
    RunState,
)
from vmtune.bench.model.scenario.migration import nearest_power_of_two
from vmtune.bench.model.scenario.parts import GIB, MIB
from vmtune.bench.reduce import reduce
from vmtune.errors import InvalidInput
from vmtune.model.migration.record import QemuStatus, Sample, Totals, read_query_migrate
from vmtune.model.migration.steps import AfterIterations, Step, StepAction, dump_steps
from vmtune.model.tunables.tunable import Value

NAME = "guestperf"
"""Where such a run came from, and the family of scenarios that are not ours."""
_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 60
_FIRST_LOOK_MS = 50
_UNKNOWN_CPU = ("migration", "multifd", "other")


def import_report(text: str, run_id: UUID, created_at: datetime) -> Run:
    """The run of a report. What it holds that a run has no field for is preserved, so
    that :func:`vmtune.bench.guestperf.exporting.export_report` gives it back.

    - The timeline begins at the whole second before the report's first time stamp.
    - The CPU time of QEMU's threads is known for all vCPUs together; the rest is under ``other``,
      and has no metrics.
    - A pass's time stamp is the guest's own clock, which was set by the host's.
    - guestperf cancels a migration only at its limits, so that one has not converged. One that
      completed has completed, also when the guest was paused for it.
    - A scenario that guestperf ran as ours of that name does has its name; others, as its
      XBZRLE cache of 20 % which is one of 10 %, are named ``guestperf/...``.

    :param created_at: when it is imported.
    :raise InvalidInput: with a problem for each field that cannot be accepted.
    """
    report = read_report(text)
    try:
        return _run(report, run_id, created_at)
    except RecursionError as error:
        raise InvalidInput(
            "the report is nested too deeply",
            field="report",
            code="not_json",
            remedy="give the file that guestperf wrote, as it is",
        ) from error


def _run(report: Document, run_id: UUID, created_at: datetime) -> Run:
    stamps = list(_time_stamps(report))
    start_s = int(min(stamps, default=0))
    record = _record(report, start_s, max(stamps, default=0))
    values = _values(report)
    state, failure = _state(report["progress_history"])
    steps = _steps(report["scenario"])
    made = Run(
        id=run_id,
        scenario=_name(report, values, steps),
        setup=_setup(report, values, steps),
        values=values,
        state=state,
        created_at=created_at,
        qemu=report["binary"],
        options={KEPT: {"tids": _tids(report)}},
        started_at=datetime.fromtimestamp(start_s, UTC),
        ended_at=datetime.fromtimestamp(start_s + record.ended_ms / 1000, UTC),
        failure=failure,
        metrics=_metrics(record, state, values),
        record=record,
        imported_from=NAME,
    )
    patch = patch_between(regenerated(made, record), report)
    return replace(made, options={KEPT: {**made.options[KEPT], "patch": patch}})


def _time_stamps(report: Document) -> Iterator[float]:
    for entry in report["progress_history"][:1]:
        yield max(0, entry["now"] - entry["duration"] / 1000 - _FIRST_LOOK_MS / 1000)
    for entry in report["progress_history"]:
        yield entry["now"]
    for name in ("guest_timings", "qemu_timings", "vcpu_timings"):
        for entry in report[name]:
            yield entry["timestamp"]


def _name(report: Document, values: Mapping[str, Value], steps: tuple[Step, ...]) -> str:
    theirs: str = report["scenario"]["name"]
    ours = GUESTPERF_NAMES.get(theirs, theirs)
    known = SCENARIOS.get(ours)
    if known is not None and known.steps == steps:
        wanted = _as_set(known.values, report["hardware"]["mem"])
        if theirs in GUESTPERF_NAMES:  # the ring is a part of its hardware
            wanted["dirty_ring_size_entries"] = values.get("dirty_ring_size_entries", 0)
        if _in_use(wanted) == _in_use(values):
            return ours
    plain = _ODD.sub("-", theirs).strip("._-")[:_LONGEST_NAME].rstrip("._-")
    return f"{NAME}/{plain or 'unnamed'}"


def _as_set(values: Mapping[str, Value], memory_gib: int) -> dict[str, Value]:
    """One of our scenarios as guestperf would set it for a VM of that memory."""
    made: dict[str, Value] = {}
    for switch, settings in _settings(_DEFAULTS, memory_gib).items():
        if values.get(switch) is True:
            made |= settings
    made |= values
    cache = values.get("xbzrle_cache_size_bytes")
    if isinstance(cache, int):
        made["xbzrle_cache_size_bytes"] = nearest_power_of_two(cache * memory_gib)
    return made


def _in_use(values: Mapping[str, Value]) -> dict[str, Value]:
    """Without what is off, which is the same as not set."""
    off = (False, 0, "off", "none")
    return {name: value for name, value in values.items() if value not in off}


def _values(report: Document) -> dict[str, Value]:
    """The tunables that guestperf set, as it set them: QEMU may have refused them."""
    scenario, hardware = report["scenario"], report["hardware"]
    values: dict[str, Value] = {
        "downtime_limit_ms": round(scenario["downtime"]),
        "max_bandwidth_bytes_per_s": round(scenario["bandwidth"] * MIB),
    }
    settings = _settings(scenario, hardware["mem"])
    for ours, theirs in SWITCHES.items():
        if scenario.get(theirs):
            values |= {ours: True, **settings[ours]}
    if hardware.get("dirty_ring_size"):
        values["dirty_ring_size_entries"] = hardware["dirty_ring_size"]
    return values


def _settings(scenario: Mapping[str, Any], memory_gib: int) -> dict[str, dict[str, Value]]:
    """What guestperf sets with each switch that is on."""
    cache = round(memory_gib * GIB * scenario["compression_xbzrle_cache"] / 100)
    settings: dict[str, dict[str, Value]] = {
        "auto_converge": {"cpu_throttle_increment_percent": scenario["auto_converge_step"]},
        "compress": {
            "compress_threads": scenario["compression_mt_threads"],
            "decompress_threads": scenario["compression_mt_threads"],
        },
        "xbzrle": {"xbzrle_cache_size_bytes": nearest_power_of_two(cache)},
        "multifd": {"multifd_channels": scenario["multifd_channels"]},
        "dirty_limit": {
            "vcpu_dirty_limit_period_ms": scenario.get("x_vcpu_dirty_limit_period", 500),
            "vcpu_dirty_limit_mib_per_s": scenario.get("vcpu_dirty_limit", 1),
        },
        "postcopy": {},
    }
    if scenario.get("multifd_compression"):
        settings["multifd"]["multifd_compression"] = scenario["multifd_compression"]
    return settings


_DEFAULTS = {field.name: field.default for field in SCENARIO}


def _steps(scenario: Document) -> tuple[Step, ...]:
    """It counts the iteration that is under way, so that its 0 and 1 are both: at once."""
    found = [
        (max(0, scenario[f"{theirs}_iters"] - 1), action)
        for theirs, action in (("pause", StepAction.PAUSE), ("post_copy", StepAction.POSTCOPY))
        if scenario[theirs]
    ]
    ordered = sorted(found, key=lambda each: each[0])
    return tuple(Step(AfterIterations(iterations), action) for iterations, action in ordered)


def _setup(report: Document, values: Mapping[str, Value], steps: tuple[Step, ...]) -> Document:
    """As :func:`vmtune.bench.model.scenario.migration.to_json` writes one; guestperf's stress
    writes whole pages, all over the memory."""
    scenario, hardware = report["scenario"], report["hardware"]
    return {
        "name": _name(report, values, steps),
        "title": f"guestperf's {scenario['name']}"[:200],
        "vm": {
            "memory_bytes": hardware["mem"] * GIB + SPARE_MIB * MIB,
            "vcpus": hardware["cpus"],
        },
        "workload": {"region_bytes": hardware["mem"] * GIB, "stride_bytes": 1},
        "values": dict(values),
        "steps": dump_steps(steps),
        "transport": report["transport"],
        "warmup_s": report["sleep"],
        "cooldown_s": report["sleep"],
        "max_iterations": scenario["max_iters"],
        "max_seconds": scenario["max_time"],
    }


def _tids(report: Document) -> Document:
    """Threads by guestperf's numbers, so that they need not be stored one by one."""
    qemu = [entry["tid"] for entry in report["qemu_timings"][:1]]
    vcpus = [entry["tid"] for entry in report["vcpu_timings"][:1]]
    return {
        "guest": list(dict.fromkeys(entry["tid"] for entry in report["guest_timings"])),
        **({"qemu": qemu[0]} if qemu else {}),
        **({"vcpu": vcpus[0]} if vcpus else {}),
    }


def _state(history: Sequence[Document]) -> tuple[RunState, str]:
    ends = {
        "completed": (RunState.COMPLETED, ""),
        "cancelled": (RunState.NOT_CONVERGED, ""),
        "failed": (RunState.FAILED, "guestperf does not say why"),
    }
    status = history[-1]["status"] if history else ""
    unfinished = (RunState.FAILED, "the report ends while the migration runs")
    return ends.get(status, unfinished if history else (RunState.FAILED, "it never migrated"))


def _record(report: Document, start_s: int, last_s: float) -> RunRecord:
    history = report["progress_history"]
    begun = ended = totals = None
    if history:
        begun = _begun_ms(history, start_s)
        final = _snapshot_status(history[-1]) in (
            QemuStatus.COMPLETED, QemuStatus.FAILED, QemuStatus.CANCELLED,
        )  # fmt: skip
        ended = round(_at_ms(history[-1]["now"], start_s)) if final else None
        totals = _totals(history[-1]) if history[-1]["status"] == "completed" else None
    return RunRecord(
        migration_ms=begun,
        migration_ended_ms=ended,
        ended_ms=round(_at_ms(last_s, start_s)),
        samples=tuple(
            _sample(entry, start_s) for entry in history if _snapshot_status(entry).running
        ),
        passes=_passes(report["guest_timings"], start_s),
        cpu=tuple(_cpu(report, start_s)),
        totals=totals,
    )


def _at_ms(stamp_s: float, start_s: int) -> float:
    """On the timeline. The difference is exact, so that the stamp can be had back."""
    return (stamp_s - start_s) * 1000


def _begun_ms(history: Sequence[Document], start_s: int) -> int:
    """QEMU reports how long it has been migrating, but not in setup; guestperf first looks 50 ms
    after it has begun."""
    for entry in history:
        if entry["duration"] > 0 and _snapshot_status(entry).running:
            begun: float = _at_ms(entry["now"], start_s) - entry["duration"]
            return max(0, round(begun))
    return max(0, round(_at_ms(history[0]["now"], start_s)) - _FIRST_LOOK_MS)


def _snapshot_status(entry: Document) -> QemuStatus:
    return read_query_migrate({"status": entry["status"]}).status


def _sample(entry: Document, start_s: int) -> Sample:
    ram = entry["ram"]
    pages = round(ram["normal_pages"])
    return Sample(
        at_ms=round(_at_ms(entry["now"], start_s)),
        status=_snapshot_status(entry),
        iteration=round(ram["iterations"]),
        boundary=True,
        transferred_bytes=round(ram["transferred_bytes"]),
        remaining_bytes=round(ram["remaining_bytes"]),
        total_bytes=round(ram["total_bytes"]),
        zero_pages=round(ram["duplicate_pages"]),
        normal_pages=pages,
        page_size_bytes=round(ram["normal_bytes"] / pages) if pages else 4096,
        dirty_pages_per_s=round(ram["dirty_rate_pps"]),
        throughput_bytes_per_s=round(ram["transfer_rate_mbs"] * 1e6 / 8),
        multifd_bytes=0,
        postcopy_bytes=0,
        expected_downtime_ms=round(entry["downtime_expected"]) or None,
        throttle_percent=round(entry["throttle_pcent"]),
        missed_zero_copy=0,
        dirty_limit_throttle_us=round(entry.get("dirty_limit_throttle_time_per_round", 0)),
        dirty_limit_ring_full_us=round(entry.get("dirty_limit_ring_full_time", 0)),
    )


def _totals(entry: Document) -> Totals:
    return Totals(
        total_time_ms=round(entry["duration"]),
        downtime_ms=round(entry["downtime"]),
        setup_time_ms=round(entry["setup_time"]) or None,
        transferred_bytes=round(entry["ram"]["transferred_bytes"]),
        iterations=round(entry["ram"]["iterations"]),
    )


def _passes(timings: Sequence[Document], start_s: int) -> tuple[GuestPass, ...]:
    """Each entry is one thread's time for 1 GiB."""
    workers: dict[int, int] = {}
    numbers: dict[int, Iterator[int]] = defaultdict(lambda: itertools.count(1))
    began = timings[0]["timestamp"] if timings else 0
    passes = []
    for entry in timings:
        worker = workers.setdefault(entry["tid"], len(workers))
        passes.append(
            GuestPass(
                worker=worker,
                number=next(numbers[worker]),
                at_ms=_at_ms(entry["timestamp"], start_s),
                guest_us=round((entry["timestamp"] - began) * 1e6),
                duration_us=round(entry["value"] * 1000),
                written_bytes=GIB,
            )
        )
    return tuple(passes)


def _cpu(report: Document, start_s: int) -> Iterator[CpuSample]:
    """guestperf reads the process and then, a moment later, each of its vCPU threads."""
    vcpus = report["vcpu_timings"]
    qemu = report["qemu_timings"]
    latest: dict[int, float] = {}
    place = 0
    for entry, after in itertools.zip_longest(qemu, qemu[1:]):
        while place < len(vcpus) and (
            after is None or vcpus[place]["timestamp"] < after["timestamp"]
        ):
            latest[vcpus[place]["tid"]] = vcpus[place]["value"]
            place += 1
        vcpu = sum(latest.values())
        yield CpuSample(
            at_ms=_at_ms(entry["timestamp"], start_s),
            side=HostSide.SOURCE,
            vcpu_ms=float(vcpu),
            migration_ms=0.0,
            multifd_ms=0.0,
            other_ms=float(max(0.0, entry["value"] - vcpu)),
        )


def _metrics(record: RunRecord, state: RunState, values: Mapping[str, Value]) -> dict[str, float]:
    """Without those of threads that guestperf does not distinguish."""
    unknown = {f"{HostSide.SOURCE.value}_cpu_{kind}_ms" for kind in _UNKNOWN_CPU}
    found = reduce(record, state, values)
    return {name: value for name, value in found.items() if name not in unknown}
