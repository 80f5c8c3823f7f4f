"""guestperf's reports: exact ones of both forms, and round trips both ways."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vmtune.bench.guestperf import (
    Form,
    export_report,
    import_report,
    looks_like_report,
)
from vmtune.bench.guestperf.extras import patch_between, patched
from vmtune.bench.guestperf.format import (
    HARDWARE,
    MAX_CHARACTERS,
    PROGRESS,
    RAM,
    REPORT,
    SCENARIO,
    read_report,
)
from vmtune.bench.migration.families import SCENARIOS
from vmtune.bench.model.runs.run import CpuSample, GuestPass, HostSide, Run, RunRecord, RunState
from vmtune.bench.model.scenario.migration import Scenario, from_json, to_json
from vmtune.bench.model.scenario.parts import GIB, MIB
from vmtune.errors import InvalidInput
from vmtune.model.migration.record import QemuStatus, Sample, Totals
from vmtune.model.migration.steps import AfterIterations, AfterSeconds, Step, StepAction

FOLDER = Path(__file__).parents[2] / "data/guestperf"
ID = UUID("7f0c2c9e-1a51-4c05-8b7e-6f3c0d5f2a11")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MADE = ("old-completed", "old-cancelled", "new-completed", "new-paused", "new-failed")


def sample_report(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return loaded


def taken_in(name: str) -> Run:
    return import_report((FOLDER / f"{name}.json").read_text(), ID, NOW)


def of(run: Run) -> RunRecord:
    assert run.record is not None
    return run.record


@pytest.mark.parametrize("name", MADE)
def test_a_report_comes_out_as_it_went_in(name: str) -> None:
    exported = export_report(taken_in(name))
    assert json.loads(exported) == sample_report(name)
    assert same(json.loads(exported), sample_report(name))


def same(one: Any, other: Any) -> bool:
    """1 and 1.0 are two things here."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def test_what_a_run_has_a_place_for_is_not_kept_beside_it() -> None:
    kept = taken_in("new-completed").options["guestperf"]["patch"]["in"]
    assert "guest_timings" not in kept
    assert "qemu_timings" not in kept
    assert "hardware" not in kept
    assert "result" not in kept
    seldom = {"now", "duration", "ram", "setup_time"}
    for entry in list(kept["progress_history"]["at"].values())[:-1]:
        assert set(entry["in"]) <= seldom


@pytest.mark.parametrize(
    ("name", "scenario", "state"),
    [
        ("old-completed", "guestperf/compr-xbzrle-cache-20", RunState.COMPLETED),
        ("old-cancelled", "guestperf/compr-multifd-channels-4", RunState.NOT_CONVERGED),
        ("new-completed", "auto-converge-iters/step-10", RunState.COMPLETED),
        ("new-paused", "pause-after/4", RunState.COMPLETED),
        ("new-failed", "compr-dirty-limit/20MB", RunState.FAILED),
    ],
)
def test_which_scenario_it_was_and_how_it_ended(name: str, scenario: str, state: RunState) -> None:
    """guestperf's defects show: its cache of 20 % is one of 10 %, its 4 channels are 2."""
    run = taken_in(name)
    assert (run.scenario, run.state) == (scenario, state)
    assert bool(run.failure) is (state is RunState.FAILED)
    assert run.imported_from == "guestperf"
    assert (run.id, run.created_at) == (ID, NOW)
    setup = from_json(run.setup)
    assert setup.name == scenario
    assert (setup.vm.memory_bytes, setup.workload.region_bytes) == (1536 * MIB, GIB)
    assert (setup.warmup_s, setup.max_iterations, setup.max_seconds) == (15, 30, 300)


def test_the_tunables_are_what_guestperf_set() -> None:
    assert taken_in("old-completed").values == {
        "downtime_limit_ms": 500,
        "max_bandwidth_bytes_per_s": 125_000 * MIB,
        "xbzrle": True,
        "xbzrle_cache_size_bytes": 128 * MIB,
    }
    assert taken_in("old-cancelled").values["multifd_channels"] == 2
    limited = taken_in("new-failed").values
    assert limited["dirty_limit"] is True
    assert limited["vcpu_dirty_limit_mib_per_s"] == 20
    assert limited["vcpu_dirty_limit_period_ms"] == 500
    assert limited["dirty_ring_size_entries"] == 4096
    assert from_json(taken_in("new-paused").setup).steps == (
        Step(AfterIterations(4), StepAction.PAUSE),
    )


def test_the_record_is_on_one_timeline() -> None:
    record = of(taken_in("new-completed"))
    assert taken_in("new-completed").started_at == datetime.fromtimestamp(1_700_000_000, UTC)
    # The made report migrates 14 s after its first reading, which is 0.314 s into a second;
    # QEMU tells whole milliseconds.
    assert record.migration_ms == 14_315
    assert record.migration_ended_ms == 14_315 + 10_312
    assert [s.iteration for s in record.samples] == list(range(1, 10))
    assert record.samples[0].at_ms - record.migration_ms == 51
    assert record.samples[0].remaining_bytes == int(0.97 * GIB)
    assert record.samples[0].throughput_bytes_per_s == round(8013.34567e6 / 8)
    assert record.samples[8].throttle_percent == 80
    assert record.samples[8].page_size_bytes == 4096
    assert record.totals == Totals(10_300, 137, 3, record.totals.transferred_bytes, 10)
    assert record.ended_ms > record.migration_ended_ms + 13_000


def test_the_guests_threads_and_the_cpu_time() -> None:
    record = of(taken_in("old-completed"))
    assert {each.worker for each in record.passes} == {0, 1}
    assert [each.number for each in record.passes if each.worker == 1][:3] == [1, 2, 3]
    assert {each.written_bytes for each in record.passes} == {GIB}
    last = record.cpu[-1]
    assert last.side is HostSide.SOURCE
    assert last.vcpu_ms == 2 * 980.0 * (len(record.cpu) - 1)
    assert last.total_ms == 2400.0 * (len(record.cpu) - 1)


def test_the_dirty_limits_figures_are_there() -> None:
    record = of(taken_in("new-failed"))
    assert record.samples[-1].dirty_limit_throttle_us == 104_186
    assert record.samples[-1].dirty_limit_ring_full_us == 51_200
    assert record.totals is None


def test_it_has_metrics_but_none_of_threads_that_are_not_told_apart() -> None:
    metrics = taken_in("new-completed").metrics
    assert metrics["total_time_ms"] == 10_300
    assert metrics["downtime_ms"] == 137
    assert metrics["converged"] == 1
    assert metrics["throttle_max_percent"] == 80
    assert metrics["guest_worst_ms_per_gib"] > 2.5 * metrics["guest_baseline_ms_per_gib"]
    assert metrics["source_cpu_ms"] > metrics["source_cpu_vcpu_ms"] > 0
    absent = {"source_cpu_migration_ms", "source_cpu_multifd_ms", "source_cpu_other_ms"}
    assert not absent & metrics.keys()
    assert taken_in("old-cancelled").metrics["converged"] == 0
    assert taken_in("new-failed").metrics["converged"] == 0


# --- both forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MADE)
def test_both_forms_have_exactly_their_fields(name: str) -> None:
    """The forms are told by files whose maker knows nothing of the exporter."""
    run = taken_in(name)
    for form, like in ((Form.OLD, "old-completed"), (Form.NEW, "new-completed")):
        made, example = json.loads(export_report(run, form)), sample_report(like)
        assert list(made) == list(example)
        for part in ("hardware", "scenario"):
            assert list(made[part]) == list(example[part])
        assert list(made["progress_history"][0]) == list(example["progress_history"][0])
        assert list(made["progress_history"][0]["ram"]) == list(
            example["progress_history"][0]["ram"]
        )
    assert same(json.loads(export_report(run, Form(name[:3]))), sample_report(name))


def test_the_result_is_guestperfs() -> None:
    """It counts a migration of a paused guest as failed."""
    run = replace(taken_in("new-completed"), options={})
    assert json.loads(export_report(run))["result"] == {"success": True}
    paused = replace(taken_in("new-paused"), options={})
    assert json.loads(export_report(paused))["result"] == {"success": False}


# --- any report ---------------------------------------------------------------------------------

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
counts = st.integers(0, 1 << 40)
numbers = counts | st.floats(0, 1e12)
stamps = st.floats(1.6e9, 1.8e9) | st.integers(0, 1 << 33)


def fields_of(table: Any, **known: Any) -> st.SearchStrategy[dict[str, Any]]:
    mapping = {field.name: known.get(field.name, numbers) for field in table if not field.new}
    optional = {field.name: known.get(field.name, numbers) for field in table if field.new}
    later = {"of_a_later_guestperf": st.lists(st.none() | numbers | text)}
    return st.fixed_dictionaries(mapping, optional={**optional, **later})


switches = st.booleans()
bindings = st.none() | st.lists(text, max_size=3)
timings = st.lists(
    st.fixed_dictionaries({"tid": counts, "timestamp": stamps, "value": numbers}), max_size=12
)
reports = fields_of(
    REPORT,
    hardware=fields_of(
        HARDWARE,
        **{name: bindings for name in ("src_mem_bind", "dst_mem_bind", "src_cpu_bind",
                                       "dst_cpu_bind")},
        cpus=st.integers(1, 64),
        mem=st.integers(0, 64),
        prealloc_pages=switches | text,
        huge_pages=switches,
        locked_pages=switches,
        dirty_ring_size=st.none() | st.sampled_from([0, 4096]),
    ),
    scenario=fields_of(
        SCENARIO,
        name=text | st.sampled_from(["compr-multifd-channels-4", "plain/1gbs"]),
        bandwidth=st.integers(0, 200_000),
        multifd_compression=st.sampled_from(["", "zstd"]),
        compression_xbzrle_cache=st.integers(0, 100),
        **{name: switches for name in ("pause", "post_copy", "auto_converge", "compression_mt",
                                       "compression_xbzrle", "multifd", "dirty_limit")},
        **{
            name: st.integers(0, 100)
            for name in ("max_iters", "pause_iters", "post_copy_iters", "auto_converge_step",
                         "compression_mt_threads", "multifd_channels",
                         "x_vcpu_dirty_limit_period", "vcpu_dirty_limit")
        },
    ),
    progress_history=st.lists(
        fields_of(
            PROGRESS,
            status=st.sampled_from([status.value for status in QemuStatus]) | text,
            ram=fields_of(RAM),
            now=stamps,
        ),
        max_size=6,
    ),
    guest_timings=timings,
    qemu_timings=timings,
    vcpu_timings=timings,
    result=st.fixed_dictionaries({"success": switches}),
    binary=text,
    dst_host=text,
    kernel=text,
    initrd=text,
    transport=text,
    sleep=st.integers(0, 1000),
)  # fmt: skip


@given(reports)
@settings(max_examples=150, deadline=None)
def test_whatever_guestperf_can_hold_comes_out_again(report: dict[str, Any]) -> None:
    run = import_report(json.dumps(report), ID, NOW)
    assert same(json.loads(export_report(run)), report)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | text,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
        ),
        max_leaves=10,
    ),
    st.data(),
)
def test_a_patch_makes_the_one_of_the_other(made: Any, data: st.DataObject) -> None:
    other = data.draw(st.sampled_from([made, [made], {"a": made}, {"b": 1, "c": made}, [1, made]]))
    patch = patch_between(made, other)
    assert same(patched(made, json.loads(json.dumps(patch))), other)
    assert patch_between(other, other) is None


# --- our own runs -------------------------------------------------------------------------------


def sample(iteration: int, at_ms: int, **changes: Any) -> Sample:
    made = Sample(
        at_ms=at_ms, status=QemuStatus.ACTIVE, iteration=iteration, boundary=True,
        transferred_bytes=1000 * at_ms, remaining_bytes=2 * GIB - 1000 * at_ms,
        total_bytes=2 * GIB, zero_pages=77, normal_pages=250 * at_ms, page_size_bytes=4096,
        dirty_pages_per_s=12_345, throughput_bytes_per_s=125_000_000, multifd_bytes=5,
        postcopy_bytes=6, expected_downtime_ms=300, throttle_percent=20, missed_zero_copy=3,
        dirty_limit_throttle_us=11, dirty_limit_ring_full_us=12,
    )  # fmt: skip
    return replace(made, **changes)


@st.composite
def own_runs(draw: st.DrawFn) -> Run:
    scenario = draw(st.sampled_from([*SCENARIOS.values()]))
    begun = draw(st.integers(1000, 5000))
    looks = sorted(draw(st.sets(st.integers(1, 9000), min_size=1, max_size=8)))
    samples = tuple(
        sample(1 + index // 2, begun + at, boundary=index % 2 == 0)
        for index, at in enumerate(looks)
    )
    ended = begun + looks[-1] + draw(st.integers(1, 500))
    state = draw(st.sampled_from([RunState.COMPLETED, RunState.NOT_CONVERGED, RunState.FAILED]))
    totals = Totals(ended - begun, 41, 4, 1 << 30, 1 + len(looks) // 2, 7)
    workers = draw(st.integers(1, 3))
    passes = tuple(
        GuestPass(worker, number, 500.0 * number + worker, 500_000 * number, duration, 1 << 26)
        for number in range(1, draw(st.integers(1, 9)))
        for worker in range(workers)
        for duration in [draw(st.integers(1000, 900_000))]
    )
    cpu = tuple(
        CpuSample(at * 250.0, side, at * 200.0, at * 30.0, at * 20.0, at * 10.0)
        for at in range(draw(st.integers(0, 12)))
        for side in HostSide
    )
    return Run(
        id=ID,
        scenario=scenario.name,
        setup=to_json(scenario),
        values=scenario.values,
        state=state,
        created_at=NOW,
        started_at=NOW,
        record=RunRecord(
            migration_ms=begun,
            migration_ended_ms=ended,
            ended_ms=ended + 2000,
            samples=samples,
            passes=passes,
            cpu=cpu,
            totals=totals if state is RunState.COMPLETED else None,
        ),
    )


@given(own_runs())
@settings(max_examples=100, deadline=None)
def test_our_runs_survive_as_far_as_guestperf_can_hold_them(run: Run) -> None:
    exported = export_report(run)
    again = import_report(exported, ID, NOW)
    assert same(json.loads(export_report(again)), json.loads(exported))
    assert again.state is run.state
    held = {name for name in run.values if name in again.values}
    lost = {name for name, v in run.values.items() if v not in (False, 0, "off", "none")} - held
    ours = run.scenario if not lost else "guestperf/" + run.scenario.replace("/", "-")
    assert again.scenario == ours
    assert {name: again.values[name] for name in held} == {n: run.values[n] for n in held}
    before, after = of(run), of(again)
    firsts = {s.iteration: s for s in reversed(before.samples)}
    shift = after.samples[0].at_ms - before.samples[0].at_ms
    assert shift % 1000 == 0  # the timeline's beginning is not in a report
    assert after.samples == tuple(
        replace(s, at_ms=s.at_ms + shift, boundary=True, multifd_bytes=0, postcopy_bytes=0,
                missed_zero_copy=0)
        for _, s in sorted(firsts.items())
    )  # fmt: skip
    assert before.migration_ms is not None and before.migration_ended_ms is not None
    assert after.migration_ms == before.migration_ms + shift
    assert after.migration_ended_ms == before.migration_ended_ms + shift
    wanted = replace(before.totals, missed_zero_copy=0) if before.totals else None
    assert after.totals == wanted
    source = [s for s in before.cpu if s.side is HostSide.SOURCE]
    assert [(s.vcpu_ms, s.total_ms) for s in after.cpu] == [(s.vcpu_ms, s.total_ms) for s in source]
    for ours, theirs in zip(before.passes, after.passes, strict=True):
        assert (theirs.worker, theirs.number) == (ours.worker, ours.number)
        assert theirs.at_ms - shift == pytest.approx(ours.at_ms, abs=0.001)
        assert theirs.duration_us == pytest.approx(16 * ours.duration_us, abs=501)


def test_a_ring_of_another_size_is_another_of_our_scenarios_but_not_of_guestperfs() -> None:
    scenario = SCENARIOS["dirty-ring/4096-stock"]
    run = replace(own_run(), scenario=scenario.name, setup=to_json(scenario),
                  values=scenario.values)  # fmt: skip
    report = json.loads(export_report(run))
    assert import_report(json.dumps(report), ID, NOW).scenario == scenario.name
    report["hardware"]["dirty_ring_size"] = 8192
    assert import_report(json.dumps(report), ID, NOW).scenario == "guestperf/dirty-ring-4096-stock"
    theirs = sample_report("new-failed")
    theirs["hardware"]["dirty_ring_size"] = 8192
    assert import_report(json.dumps(theirs), ID, NOW).scenario == "compr-dirty-limit/20MB"


def test_iterations_are_counted_as_guestperf_does() -> None:
    run = own_run(steps=(Step(AfterIterations(4), StepAction.PAUSE),))
    told = json.loads(export_report(run))["scenario"]
    assert (told["pause"], told["pause_iters"]) == (True, 5)
    assert (told["post_copy"], told["post_copy_iters"]) == (False, 5)


def test_steps_that_guestperf_does_not_know_are_left_out() -> None:
    run = own_run(steps=(Step(AfterSeconds(4), StepAction.PAUSE),))
    assert json.loads(export_report(run))["scenario"]["pause"] is False


def own_run(**changes: Any) -> Run:
    scenario = Scenario("mine/one", **changes)
    return Run(ID, scenario.name, to_json(scenario), scenario.values, RunState.FAILED, NOW,
               record=RunRecord())  # fmt: skip


def test_a_run_that_never_migrated_can_be_exported() -> None:
    report = json.loads(export_report(own_run()))
    assert report["progress_history"] == []
    again = import_report(json.dumps(report), ID, NOW)
    assert (again.state, again.failure) == (RunState.FAILED, "it never migrated")
    assert again.scenario == "guestperf/mine-one"


def test_what_was_not_set_is_exported_as_qemu_has_it() -> None:
    told = json.loads(export_report(own_run()))["scenario"]
    assert (told["downtime"], told["bandwidth"]) == (300, 128)


def test_a_run_without_a_record_cannot_be_exported() -> None:
    with pytest.raises(InvalidInput) as caught:
        export_report(replace(own_run(), record=None))
    assert caught.value.problems[0].code == "no_record"
    assert caught.value.problems[0].remedy


# --- what is refused ----------------------------------------------------------------------------


def changed(report: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """*report* with one field set, or taken away where *value* is ``...``."""
    *way, last = path.split(".")
    at: Any = report
    for name in way:
        at = at[int(name)] if isinstance(at, list) else at[name]
    if value is ...:
        del at[last]
    elif isinstance(at, list):
        at[int(last)] = value
    else:
        at[last] = value
    return report


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ("hardware", ..., "missing"),
        ("hardware", 7, "not_an_object"),
        ("hardware.mem", "1", "invalid_value"),
        ("hardware.mem", 1 << 40, "invalid_value"),
        ("hardware.cpus", True, "invalid_value"),
        ("hardware.src_cpu_bind", "0,1", "not_a_list"),
        ("scenario.name", None, "invalid_value"),
        ("scenario.name", "x" * 5000, "too_long"),
        ("scenario.pause", 0, "invalid_value"),
        ("scenario.compression_xbzrle_cache", 101, "invalid_value"),
        ("scenario.bandwidth", -1, "invalid_value"),
        ("scenario.dirty_limit", "yes", "invalid_value"),
        ("progress_history", {}, "not_a_list"),
        ("progress_history.2.ram", ..., "missing"),
        ("progress_history.2.ram.iterations", ..., "missing"),
        ("progress_history.2.ram.iterations", [], "invalid_value"),
        ("progress_history.2.now", -1, "invalid_value"),
        ("progress_history.2.now", 1e300, "invalid_value"),
        ("guest_timings.0.value", "12ms", "invalid_value"),
        ("guest_timings.0.tid", 1.5, "invalid_value"),
        ("vcpu_timings.0", [], "not_an_object"),
        ("result.success", "true", "invalid_value"),
        ("sleep", ..., "missing"),
    ],
)
def test_a_field_that_cannot_be_accepted_is_named(path: str, value: Any, code: str) -> None:
    report = changed(sample_report("new-completed"), path, value)
    with pytest.raises(InvalidInput) as caught:
        read_report(json.dumps(report))
    problem = caught.value.problems[0]
    assert (problem.field, problem.code) == (path, code)
    assert problem.remedy


def test_all_problems_are_told_at_once() -> None:
    report = sample_report("new-completed")
    for path in ("hardware.mem", "scenario.pause", "progress_history.1.now"):
        report = changed(report, path, "x")
    with pytest.raises(InvalidInput) as caught:
        read_report(json.dumps(report))
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("", "not_json"),
        ("{", "not_json"),
        ('{"a": 1, "a": 2}', "not_json"),
        ('{"a": NaN}', "not_json"),
        ('{"a": 1e999}', "not_json"),
        ('{"a": "\\u0000"}', "not_json"),
        ('{"a": "\\ud800"}', "not_json"),
        ('{"a": ' + "9" * 5000 + "}", "not_json"),
        ("[" * 100_000, "not_json"),
        ("[]", "not_an_object"),
        ("null", "not_an_object"),
        (" " * (MAX_CHARACTERS + 1), "too_long"),
    ],
    ids=lambda raw: str(raw)[:12],
)
def test_what_is_no_report_at_all_is_told(raw: str, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        import_report(raw, ID, NOW)
    assert caught.value.problems[0].code == code
    assert caught.value.problems[0].remedy


def test_a_deeply_nested_extra_is_no_traceback() -> None:
    report = sample_report("new-completed")
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    report["extra"] = deep
    text = json.dumps(report)
    try:
        assert same(json.loads(export_report(import_report(text, ID, NOW))), report)
    except InvalidInput as error:
        assert error.problems[0].code == "not_json"


def test_a_report_is_known_by_its_fields() -> None:
    assert looks_like_report(sample_report("old-completed"))
    assert not looks_like_report({"format": "vmtune run"})
    assert not looks_like_report([])


def test_the_binary_is_the_path_of_the_program() -> None:
    run = taken_in("new-completed")
    known = replace(run, options={}, qemu="patched", environment={"qemu": {"path": "/opt/qemu"}})
    assert json.loads(export_report(known))["binary"] == "/opt/qemu"
    assert json.loads(export_report(run))["binary"] == run.qemu
