"""From a run's record to its metrics."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.model.metrics.table import MIGRATION_METRICS
from vmtune.bench.model.runs.run import CpuSample, GuestPass, HostSide, RunRecord, RunState, Silence
from vmtune.bench.model.runs.send_record import SendCounts, SendRecord
from vmtune.bench.reduce import GIB, reduce
from vmtune.model.migration.controller_record import ReaperEnd, ReaperReport, ReaperRound
from vmtune.model.migration.postcopy_figures import PostcopyFigures
from vmtune.model.migration.record import QemuStatus, Sample, Totals

MIB = 1 << 20
COMPLETED, FAILED, LIMIT = RunState.COMPLETED, RunState.FAILED, RunState.NOT_CONVERGED
PLANNED, CANCELLED = RunState.PLANNED, RunState.CANCELLED


def sample(at_ms: int, **fields: Any) -> Sample:  # any: Sample's own fields
    base = Sample(
        at_ms, QemuStatus.ACTIVE, 1, False, 1000, 0, 0, 0, 0, 4096, 0, 0, 0, 0, None, 0, 0, 0, 0
    )
    return replace(base, **fields)


def passes(*took_ms: float, worker: int = 0, rest_ms: float = 0) -> tuple[GuestPass, ...]:
    """One worker's passes of 64 MiB, one after the other; its clock never stands still."""
    at, found = 0.0, []
    for number, took in enumerate(took_ms, start=1):
        at += took
        guest_us, took_us = round(at * 1000), round(took * 1000)
        found.append(GuestPass(worker, number, at, guest_us, took_us, 64 * MIB))
        at += rest_ms
    return tuple(found)


def cpu(at_ms: float, side: HostSide, *kinds: float) -> CpuSample:
    return CpuSample(at_ms, side, *kinds)


# Warm-up: ten passes of 100 ms. In the migration two of 300 ms, then ten of 100 ms again.
CALM = RunRecord(
    migration_ms=1000,
    migration_ended_ms=1600,
    ended_ms=2600,
    passes=passes(*[100] * 10, 300, 300, *[100] * 10),
    totals=Totals(580, 40, 30, 110_000_000, 3),
)


def test_times_are_qemus_own() -> None:
    found = reduce(CALM, COMPLETED, {})
    assert (found["total_time_ms"], found["downtime_ms"], found["setup_time_ms"]) == (580, 40, 30)
    assert (found["elapsed_ms"], found["converged"]) == (600, 1)
    assert found["throughput_bytes_per_s"] == 200_000_000
    assert (found["transferred_bytes"], found["iterations"]) == (110_000_000, 3)


def test_a_run_at_its_limit_has_no_total_time_but_says_how_long_it_took() -> None:
    samples = (
        sample(1100, transferred_bytes=0),
        sample(1200, transferred_bytes=1_000_000, iteration=1),
        sample(1400, transferred_bytes=3_000_000, iteration=7),
    )
    found = reduce(replace(CALM, totals=None, samples=samples), LIMIT, {})
    assert (found["elapsed_ms"], found["converged"]) == (600, 0)
    assert not {"total_time_ms", "downtime_ms", "setup_time_ms"} & found.keys()
    assert found["throughput_bytes_per_s"] == 10_000_000
    assert (found["transferred_bytes"], found["iterations"]) == (3_000_000, 7)


def test_a_failed_run_did_not_complete() -> None:
    found = reduce(replace(CALM, totals=None), FAILED, {})
    assert found["converged"] == 0
    assert not {"transferred_bytes", "throughput_bytes_per_s"} & found.keys()
    assert found["elapsed_ms"] == 600


def test_without_a_migration_there_is_only_the_baseline() -> None:
    record = replace(CALM, migration_ms=None, migration_ended_ms=None, totals=None)
    assert reduce(record, FAILED, {}).keys() == {"converged", "guest_baseline_ms_per_gib"}


def test_an_end_that_nobody_saw_is_the_records() -> None:
    assert reduce(replace(CALM, migration_ended_ms=None), FAILED, {})["elapsed_ms"] == 1600


def test_the_guests_slow_down() -> None:
    found = reduce(CALM, COMPLETED, {})
    assert found["guest_baseline_ms_per_gib"] == 1600
    assert found["guest_worst_ms_per_gib"] == 4800
    assert found["guest_drop_ms"] == 600
    assert found["guest_excess_ms"] == 400
    assert found["guest_write_mib_per_s"] == pytest.approx(2 * 64 / 0.6)
    assert found["guest_write_share_percent"] == pytest.approx(100 / 3)


def test_a_pass_a_little_slower_than_others_is_not_slow() -> None:
    found = reduce(replace(CALM, passes=passes(*[100] * 10, *[124] * 12)), COMPLETED, {})
    assert (found["guest_drop_ms"], found["guest_excess_ms"]) == (0, 0)
    assert found["guest_worst_ms_per_gib"] == 124 * 16
    assert found["guest_write_share_percent"] == pytest.approx(100 / 1.24)


def test_a_guest_that_stands_still_to_the_end_is_slow_all_the_while() -> None:
    found = reduce(replace(CALM, passes=passes(*[100] * 10)), FAILED, {})
    assert found["guest_drop_ms"] == 1600
    assert found["guest_excess_ms"] == 1500
    assert found["guest_worst_ms_per_gib"] == 1600 * 16
    # At best it was about to end its pass.
    assert found["guest_write_mib_per_s"] == pytest.approx(64 * 600 / 1600 / 0.6)


def test_a_pass_across_the_start_counts_by_its_share() -> None:
    record = replace(CALM, passes=passes(*[100] * 9, 400, *[100] * 13))
    # From 900 to 1300: 300 of the 400 ms are in the migration.
    found = reduce(record, COMPLETED, {})
    assert found["guest_drop_ms"] == 300
    assert found["guest_excess_ms"] == 225
    assert found["guest_write_mib_per_s"] == pytest.approx(64 * (0.75 + 3) / 0.6)


def test_each_worker_has_its_own_baseline_and_rests_do_not_count() -> None:
    quick = passes(*[50] * 10, 150, *[50] * 20, worker=0, rest_ms=50)
    slow = passes(*[200] * 13, worker=1)
    found = reduce(replace(CALM, passes=quick + slow), COMPLETED, {})
    assert found["guest_drop_ms"] == 150
    assert found["guest_excess_ms"] == 50
    own = 64 / 0.1 + 64 / 0.2
    written = 64 * (1 + (600 - 150) / 100) + 64 * 3
    assert found["guest_write_share_percent"] == pytest.approx(100 * written / 0.6 / own, rel=0.03)


def test_a_worker_that_was_never_calm_leaves_the_share_out() -> None:
    late = tuple(replace(p, worker=1, at_ms=p.at_ms + 990) for p in passes(*[100] * 5))
    found = reduce(replace(CALM, passes=CALM.passes + late), COMPLETED, {})
    assert "guest_write_share_percent" not in found
    assert "guest_drop_ms" in found


def test_the_first_pass_finds_memory_unused_and_is_no_baseline() -> None:
    record = replace(CALM, passes=passes(1000, *[100] * 10))
    found = reduce(record, COMPLETED, {})
    assert "guest_baseline_ms_per_gib" not in found
    assert not {"guest_drop_ms", "guest_worst_ms_per_gib", "guest_excess_ms"} & found.keys()
    assert found["guest_write_mib_per_s"] == pytest.approx(640)


def test_silence_is_the_longest_that_touches_the_migration() -> None:
    silences = (Silence(100, 500), Silence(1590, 80), Silence(1200, 30), Silence(1700, 700))
    record = replace(CALM, beat_interval_ms=2, silences=silences)
    assert reduce(record, COMPLETED, {})["guest_silence_ms"] == 80
    deaf = replace(record, beat_interval_ms=None)
    assert "guest_silence_ms" not in reduce(deaf, COMPLETED, {})


def test_cpu_is_what_was_used_between_start_and_end() -> None:
    source, there = HostSide.SOURCE, HostSide.DESTINATION
    record = replace(
        CALM,
        cpu=(
            cpu(900, source, 900, 0, 0, 10),
            cpu(1000, source, 1000, 0, 0, 20),
            cpu(1500, source, 1400, 300, 50, 30),
            cpu(1700, source, 1500, 400, 50, 40),
            cpu(500, there, 0, 0, 0, 5),
            cpu(1500, there, 0, 60, 0, 15),
        ),
    )
    found = reduce(record, COMPLETED, {})
    assert found["source_cpu_vcpu_ms"] == 450
    assert found["source_cpu_migration_ms"] == 350
    assert found["source_cpu_multifd_ms"] == 50
    assert found["source_cpu_other_ms"] == 15
    assert found["source_cpu_ms"] == 865
    # Interpolated from 500 to 1500; after that it was not seen, and stands still.
    assert found["destination_cpu_migration_ms"] == 30
    assert found["destination_cpu_other_ms"] == 5


def test_system_time_of_sending_is_by_what_was_sent() -> None:
    source = HostSide.SOURCE
    looks = ((900, 0.0), (1000, 100.0), (1500, 600.0), (1700, 900.0))
    samples = tuple(replace(cpu(at, source, 0, 0, 0, 0), send_system_ms=used) for at, used in looks)
    assert CALM.totals is not None
    totals = replace(CALM.totals, transferred_bytes=4 << 30)
    record = replace(CALM, cpu=samples, totals=totals)
    found = reduce(record, COMPLETED, {})
    used = 750 - 100  # from 1000 to 1600
    assert found["source_send_system_ms_per_gib"] == pytest.approx(used / 4)
    for lacking in (
        replace(record, totals=None),
        replace(record, cpu=tuple(replace(each, send_system_ms=None) for each in samples)),
    ):
        assert "source_send_system_ms_per_gib" not in reduce(lacking, COMPLETED, {})


def test_cpu_that_was_not_seen_in_the_migration_is_missing() -> None:
    source = HostSide.SOURCE
    before = (cpu(100, source, 1, 1, 1, 1), cpu(200, source, 2, 2, 2, 2))
    assert "source_cpu_ms" not in reduce(replace(CALM, cpu=before), COMPLETED, {})
    once = (cpu(1100, source, 1, 1, 1, 1),)
    assert "source_cpu_ms" not in reduce(replace(CALM, cpu=once), COMPLETED, {})


SEEN = (
    sample(1100, throttle_percent=20, missed_zero_copy=4, dirty_limit_throttle_us=1500),
    sample(1200, throttle_percent=50, missed_zero_copy=4, dirty_limit_ring_full_us=2500),
)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"auto_converge": True}, {"throttle_max_percent": 50}),
        ({"zero_copy_send": True}, {"missed_zero_copy": 4}),
        (
            {"dirty_limit": True},
            {"dirty_limit_throttle_ms": 1.5, "dirty_limit_ring_full_ms": 2.5},
        ),
        ({}, {}),
    ],
)
def test_what_was_not_switched_on_is_missing(
    values: Mapping[str, bool], expected: Mapping[str, float]
) -> None:
    names = {
        *("throttle_max_percent", "missed_zero_copy"),
        *("dirty_limit_throttle_ms", "dirty_limit_ring_full_ms"),
    }
    found = reduce(replace(CALM, samples=SEEN), COMPLETED, values)
    assert {name: found[name] for name in names & found.keys()} == expected


def test_sends_by_what_was_sent() -> None:
    copied = SendCounts(sends=100, sent_bytes=GIB // 2, send_us=90_000, send_cpu_us=60_000)
    found = reduce(replace(CALM, sends=SendRecord(copied)), COMPLETED, {})
    assert found["sends"] == 100
    assert found["sendmsg_ms_per_gib"] == pytest.approx(180)
    assert found["sendmsg_cpu_ms_per_gib"] == pytest.approx(120)
    assert not {"zero_copy_flush_ms", "zero_copy_copied_percent"} & found.keys()
    zero = replace(copied, zero_copy_sends=40, copied_sends=10, flushes=3, flush_us=2500)
    found = reduce(replace(CALM, sends=SendRecord(zero)), COMPLETED, {})
    assert (found["zero_copy_flush_ms"], found["zero_copy_copied_percent"]) == (2.5, 25)
    found = reduce(replace(CALM, sends=SendRecord(SendCounts())), COMPLETED, {})
    assert found["sends"] == 0
    assert not {"sendmsg_ms_per_gib", "sendmsg_cpu_ms_per_gib"} & found.keys()
    assert "sends" not in reduce(CALM, COMPLETED, {})


def test_ring_and_reaper() -> None:
    rounds = (ReaperRound(900, 50, 52, 2, (0.1,)), ReaperRound(1000, 50, 52, 2, (0.1,)))
    report = ReaperReport("predict", 65536, ReaperEnd.MIGRATION_ENDED, rounds)
    found = reduce(replace(CALM, reaper=report, ring_full_exits=0), COMPLETED, {})
    assert (found["reaper_rounds"], found["ring_full_exits"]) == (2, 0)
    assert not {"reaper_rounds", "ring_full_exits"} & reduce(CALM, COMPLETED, {}).keys()


def test_what_post_copy_cost_the_guest_is_compared() -> None:
    """Of 100 pages two took 512 to 1,024 us, the others 64 to 128 us."""
    counts = (0, 0, 0, 0, 0, 0, 98, 0, 0, 2)
    figures = PostcopyFigures(12, (30, 20), 90_500, counts)
    found = reduce(replace(CALM, postcopy=figures), COMPLETED, {})
    own = {name: value for name, value in found.items() if name.startswith("postcopy_")}
    assert own == {
        "postcopy_blocked_ms": 12,
        "postcopy_vcpu_blocked_ms": 30,
        "postcopy_latency_us": 90.5,
        "postcopy_latency_p99_us": 1024,
    }
    before_10_1 = reduce(replace(CALM, postcopy=PostcopyFigures(12, (30,))), COMPLETED, {})
    assert not {"postcopy_latency_us", "postcopy_latency_p99_us"} & before_10_1.keys()
    assert not own.keys() & reduce(CALM, COMPLETED, {}).keys()


TIMES = st.integers(0, 3000)
RECORDS = st.builds(
    RunRecord,
    migration_ms=st.none() | TIMES,
    migration_ended_ms=st.none() | TIMES,
    ended_ms=TIMES,
    samples=st.lists(
        st.builds(sample, TIMES, transferred_bytes=st.integers(0, 10**9)), max_size=4
    ).map(tuple),
    passes=st.lists(
        st.builds(
            GuestPass, st.integers(0, 2), st.integers(0, 5), st.floats(0, 3000),
            st.integers(0, 3_000_000), st.integers(0, 3_000_000), st.sampled_from([0, 64 * MIB]),
        ),
        max_size=12,
    ).map(tuple),
    beat_interval_ms=st.none() | st.just(2.0),
    silences=st.lists(st.builds(Silence, st.floats(0, 3000), st.floats(0, 3000))).map(tuple),
    cpu=st.lists(
        st.builds(
            CpuSample, st.floats(0, 3000), st.sampled_from(HostSide),
            *[st.floats(0, 1e6)] * 4,
        )
    ).map(tuple),
    totals=st.none() | st.builds(
        Totals, TIMES, TIMES, st.none() | TIMES, st.integers(0, 10**9), st.integers(0, 99)
    ),
    ring_full_exits=st.none() | st.integers(0, 9),
    postcopy=st.none() | st.builds(PostcopyFigures, st.integers(0, 9)),
    sends=st.none()
    | st.builds(SendRecord, st.builds(SendCounts, *[st.integers(0, 1 << 40)] * 9)),
)  # fmt: skip
VALUES = st.fixed_dictionaries(
    {name: st.booleans() for name in ("auto_converge", "dirty_limit", "zero_copy_send")}
)


@pytest.mark.parametrize(
    ("state", "converged"),
    [(COMPLETED, 1.0), (FAILED, 0.0), (LIMIT, 0.0), (PLANNED, None), (CANCELLED, None)],
)
def test_what_says_nothing_about_convergence_has_no_such_value(
    state: RunState, converged: float | None
) -> None:
    assert reduce(CALM, state, {}).get("converged") == converged


@given(RECORDS, st.sampled_from([COMPLETED, FAILED, LIMIT, PLANNED]), VALUES)
def test_any_record_gives_metrics_of_the_table(
    record: RunRecord, state: RunState, values: Mapping[str, bool]
) -> None:
    found = reduce(record, state, values)
    assert list(found) == [name for name in MIGRATION_METRICS if name in found]
    for name, value in found.items():
        assert value >= 0, name
    for side in HostSide:
        parts = [v for n, v in found.items() if n.startswith(f"{side.value}_cpu_") and "_ms" in n]
        if parts:
            assert sum(parts) == pytest.approx(2 * found[f"{side.value}_cpu_ms"], abs=1e-3)


def test_every_metric_of_the_table_is_computed() -> None:
    """With a record that has everything."""
    rounds = (ReaperRound(900, 50, 52, 2, (0.1,)),)
    everything = replace(
        CALM,
        samples=SEEN,
        beat_interval_ms=2.0,
        silences=(Silence(1500, 50),),
        cpu=tuple(cpu(at, side, at, at, at, at, at) for at in (900, 1700) for side in HostSide),
        reaper=ReaperReport("predict", 65536, ReaperEnd.MIGRATION_ENDED, rounds),
        ring_full_exits=3,
        postcopy=PostcopyFigures(3, (5,), 90_000, (0, 4)),
        sends=SendRecord(SendCounts(9, GIB, 8, 7, 6, GIB, 5, 4, 3)),
    )
    values = dict.fromkeys(("auto_converge", "dirty_limit", "zero_copy_send"), True)
    assert list(reduce(everything, COMPLETED, values)) == list(MIGRATION_METRICS)
