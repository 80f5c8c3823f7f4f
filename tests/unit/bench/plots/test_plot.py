"""The picture of a run: what is in it, what it may not contain, and runs of every kind."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.bench.plots.pages import check
from tests.unit.bench.plots.runs import (
    BEGUN,
    ENDED,
    OVER,
    a_run,
    passes,
    reaper,
    sample,
)
from vmtune.bench.model.metrics.table import METRICS
from vmtune.bench.model.runs.run import (
    CpuSample,
    GuestPass,
    HostSide,
    Run,
    RunRecord,
    RunState,
    Silence,
)
from vmtune.bench.model.scenario.parts import MIB
from vmtune.bench.plots.marks import marks_of
from vmtune.bench.plots.plot import plot_run
from vmtune.bench.plots.tracks import COLUMNS, Shape, Track, tracks_of, window_of
from vmtune.model.migration.controller_record import (
    ReaperRound,
    StepEffect,
    StepRecord,
)
from vmtune.model.migration.record import QemuStatus
from vmtune.model.plan.outcome import Outcome, Status


def tracks(run: Run) -> dict[str, Track]:
    assert run.record is not None
    return {track.title: track for track in tracks_of(run, window_of(run.record))}


# --- what is in it ------------------------------------------------------------------------------


def test_the_page_shows_the_run() -> None:
    run = a_run()
    page = plot_run(run)
    text = check(page).text()
    for words in (
        "mine/busy", "completed", "A busy guest", "a.example", "KVM",
        "5,990 ms", "Downtime by QEMU",
        "Guest: time to write 1 GiB", "Throughput and dirty rate", "Left to send",
        "CPU of the source's QEMU", "CPU of the destination's QEMU", "Reaper (predict)",
        "Fill of the dirty rings", "seconds since the migration was started",
        "warm-up", "migration", "cool-down", "switchover", "silent for 90 ms",
        "QEMU reports a downtime of 87 ms",
        "set downtime_limit_ms to 900 ms", "2 iterations completed",
        "auto_converge", "effective", "overwritten by libvirt",
        "A fast one", "0123456789abcdef",
        "Ring-full exits: 17", "higher is better", "lower is better",
    ):  # fmt: skip
        assert words in text, words
    for name in run.metrics:
        assert METRICS[name].title in text
    assert "prefers-color-scheme: dark" in page and "@media print" in page
    assert "default-src 'none'" in page


def test_every_metric_has_its_unit_and_what_it_is() -> None:
    text = check(plot_run(replace(a_run(), metrics={"guest_worst_ms_per_gib": 1234.5}))).text()
    assert "1,234 ms/GiB" in text
    assert METRICS["guest_worst_ms_per_gib"].measures in text
    assert "Not available in this run: Total time;" in text


def test_the_guests_pace_is_by_the_hosts_clock_and_the_first_pass_does_not_count() -> None:
    track = tracks(a_run())["Guest: time to write 1 GiB"]
    worker, own = track.layers
    assert worker.points[0][0] == pytest.approx(500)
    assert {round(pace) for _, pace in worker.points} == {500 * 16, 2000 * 16}
    assert own.shape is Shape.RULE
    assert own.points[0][1] == pytest.approx(8000)
    assert "8,000 ms/GiB" in own.label


def test_an_unfinished_pass_is_shown_only_once_it_is_slow() -> None:
    cut = tuple(p for p in passes() if p.at_ms <= 9500)
    fine = tracks(a_run(passes=cut, ended_ms=9900))["Guest: time to write 1 GiB"]
    assert fine.layers[0].points[-1][0] == 9500
    stuck = tracks(a_run(passes=cut, ended_ms=ENDED))["Guest: time to write 1 GiB"]
    assert stuck.layers[0].points[-1] == (ENDED, pytest.approx(16 * 2500, rel=0.01))


def test_a_sharp_peak_is_drawn_on_a_logarithmic_axis() -> None:
    calm = tracks(a_run())["Guest: time to write 1 GiB"]
    sharp = tracks(a_run(passes=passes(every_ms=100, slow=40)))["Guest: time to write 1 GiB"]
    assert (calm.logarithmic, sharp.logarithmic) == (False, True)
    assert "logarithmic" in sharp.unit


def test_many_workers_become_a_band() -> None:
    few = tracks(a_run(passes=passes(workers=3)))["Guest: time to write 1 GiB"]
    assert [layer.label for layer in few.layers[:3]] == ["worker 0", "worker 1", "worker 2"]
    many = tracks(a_run(passes=passes(workers=64)))["Guest: time to write 1 GiB"]
    band, median, _ = many.layers
    assert (band.shape, band.label) == (Shape.RANGE, "fastest to slowest of 64 workers")
    assert max(p[1] for p in band.points) == pytest.approx(2000 * 16)
    assert min(p[1] for p in band.floor) == pytest.approx(500 * 16)
    assert len(band.points) == len(band.floor) <= COLUMNS
    assert median.label == "median"


def test_rates_are_in_mib_and_the_dirty_rate_begins_when_qemu_knows_it() -> None:
    looks = (sample(3100, 1, dirty_pages_per_s=0), sample(4000, 2), sample(5000, 3))
    sent, dirty = tracks(a_run(samples=looks))["Throughput and dirty rate"].layers
    assert sent.points[0] == (3100, 125)
    assert dirty.points == ((4000, 100), (5000, 100))


def test_what_is_left_is_in_the_unit_that_fits() -> None:
    assert tracks(a_run())["Left to send"].unit == "MiB"
    large = (sample(4000, 1, remaining_bytes=3 << 30),)
    track = tracks(a_run(samples=large))["Left to send"]
    assert (track.unit, track.layers[0].points) == ("GiB", ((4000, 3.0),))


def test_cpu_time_is_stacked_shares_of_a_core() -> None:
    vcpus, migration = tracks(a_run())["CPU of the source's QEMU"].layers
    assert {round(share) for _, share in vcpus.points} == {50}
    assert {round(share) for _, share in migration.points} == {75}
    assert migration.floor == vcpus.points
    assert tracks(a_run())["CPU of the destination's QEMU"].most == 100


def test_readings_that_are_too_near_are_taken_together() -> None:
    """The kernel counts CPU time in ticks, so that short stretches show none or too much."""
    ticking = tuple(
        CpuSample(float(at), HostSide.SOURCE, float(at // 40 * 20), 0.0, 0.0, 0.0)
        for at in range(0, ENDED, 10)
    )
    (layer,) = tracks(a_run(cpu=ticking))["CPU of the source's QEMU"].layers
    assert {round(share) for _, share in layer.points} == {50}


def test_the_reapers_interval_and_fill() -> None:
    found = tracks(a_run(reaper=reaper(vcpus=2)))
    interval, cost = found["Reaper (predict)"].layers
    assert interval.points[0] == (2800, 228)
    assert {each for _, each in cost.points} == {9.0}
    fullest, emptiest = found["Fill of the dirty rings"].layers
    assert {round(p[1]) for p in fullest.points} == {20}
    assert {round(p[1]) for p in emptiest.points} == {10}


def test_throttling_has_its_tracks_only_where_there_was_some() -> None:
    assert not {"Auto-converge", "Dirty limit"} & tracks(a_run()).keys()
    looks = (sample(4000, 1, throttle_percent=20, dirty_limit_throttle_us=5000),)
    found = tracks(a_run(samples=looks))
    assert found["Auto-converge"].layers[0].points == ((4000, 20),)
    assert found["Dirty limit"].layers[0].points == ((4000, 5),)


def test_the_marks() -> None:
    run = a_run()
    assert run.record is not None
    marks = marks_of(run, window_of(run.record))
    assert [(p.label, p.begin, p.end) for p in marks.phases] == [
        ("warm-up", 0, BEGUN), ("migration", BEGUN, OVER), ("cool-down", OVER, ENDED)
    ]  # fmt: skip
    assert [m.label for m in marks.iterations] == ["1", "2", "3", "4"]
    assert [m.at for m in marks.iterations] == [3050, 4500, 6000, 7500]
    assert [s.duration_ms for s in marks.silences] == [41.0, 90.0]
    assert marks.longest == Silence(8950, 90.0)
    assert marks.switchover is not None and marks.switchover.at == OVER - 87
    assert marks.downtime is not None
    assert (marks.downtime.begin, marks.downtime.end) == (OVER - 87, OVER)
    assert [(m.label, m.at) for m in marks.steps] == [("1", 5500)]


def test_in_post_copy_the_guest_goes_over_when_that_begins() -> None:
    looks = (sample(4000, 2), sample(5000, 3, status=QemuStatus.POSTCOPY_ACTIVE))
    run = a_run(samples=looks)
    assert run.record is not None
    marks = marks_of(run, window_of(run.record))
    assert marks.switchover is not None
    assert (marks.switchover.label, marks.switchover.at) == ("post-copy", 5000)
    assert marks.downtime is not None and marks.downtime.end == 5000


def test_a_migration_that_did_not_complete_has_no_switchover() -> None:
    run = a_run(RunState.NOT_CONVERGED)
    assert run.record is not None
    assert marks_of(run, window_of(run.record)).switchover is None
    assert "switchover" not in plot_run(run)


def test_a_short_migration_is_not_lost_in_a_long_warm_up() -> None:
    short = replace(a_run().record or RunRecord(), migration_ms=60_000,
                    migration_ended_ms=62_000, ended_ms=90_000)  # fmt: skip
    window = window_of(short)
    assert (window.low, window.high, window.zero, window.whole) == (57_000, 65_000, 60_000, False)
    whole = window_of(a_run().record or RunRecord())
    assert (whole.low, whole.high, whole.whole) == (0, ENDED, True)


# --- runs of every kind -------------------------------------------------------------------------


@pytest.mark.parametrize("state", RunState)
def test_a_run_in_any_state_has_a_page(state: RunState) -> None:
    assert state.value in check(plot_run(a_run(state))).text()


def test_a_run_without_a_record_has_a_page() -> None:
    run = replace(a_run(RunState.RUNNING), record=None, metrics={})
    assert "there is no record yet" in check(plot_run(run)).text()


def test_a_run_that_failed_at_once_has_a_page() -> None:
    run = a_run(RunState.FAILED)
    run = replace(run, record=RunRecord(), metrics={}, failure="QEMU did not start")
    text = check(plot_run(run)).text()
    assert "QEMU did not start" in text
    assert "Nothing was recorded over time." in text


@pytest.mark.parametrize(
    "lacking", ["samples", "passes", "silences", "cpu", "steps", "outcomes", "reaper", "totals"]
)
def test_what_was_not_recorded_is_left_out(lacking: str) -> None:
    whole = len(tracks(a_run()))
    run = a_run(**{lacking: None if lacking in ("reaper", "totals") else ()})
    check(plot_run(run))
    gone = {"samples": 2, "passes": 1, "cpu": 2, "reaper": 2}.get(lacking, 0)
    assert len(tracks(run)) == whole - gone


def test_a_run_that_never_migrated_counts_from_its_own_beginning() -> None:
    run = a_run(RunState.FAILED, migration_ms=None, migration_ended_ms=None, samples=(),
                steps=(), reaper=None)  # fmt: skip
    text = check(plot_run(run)).text()
    assert "seconds since the run began" in text
    assert "no migration was begun" in text


def test_a_single_look_can_be_seen() -> None:
    page = plot_run(a_run(samples=(sample(4000, 1),)))
    check(page)
    assert re.search(r'class="line c1" d="M[\d.]+ [\d.]+L[\d.]+ [\d.]+"', page)


def test_a_hundred_thousand_passes_keep_their_peak_and_make_a_small_page() -> None:
    many = [GuestPass(0, n + 1, n * 60.0, n * 60_000, 60_000, MIB) for n in range(100_000)]
    late = 20_000
    many[late:] = [replace(p, at_ms=p.at_ms + 5000) for p in many[late:]]
    looks = tuple(sample(BEGUN + n * 50, 1 + n // 3) for n in range(20_000))
    run = a_run(passes=tuple(many), samples=looks, migration_ended_ms=1_003_000,
                ended_ms=6_010_000)  # fmt: skip
    page = plot_run(run)
    check(page)
    assert len(page) < 400_000
    assert run.record is not None
    layer = tracks(run)["Guest: time to write 1 GiB"].layers[0]
    assert len(layer.points) <= 4 * (COLUMNS + 2)
    assert max(pace for _, pace in layer.points) == pytest.approx(5060 * 1024)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_figures_that_are_none_are_not_drawn(odd: float) -> None:
    rounds = (ReaperRound(4000, 200, 1.0, odd, (odd,)), ReaperRound(5000, 200, 1.0, 1.0, (0.5,)))
    run = a_run(reaper=replace(reaper(), rounds=rounds))
    fills = tracks(run)["Fill of the dirty rings"].layers[0]
    assert fills.points == ((5000, 50.0),)


# --- hostile texts ------------------------------------------------------------------------------

HOSTILE = "</style></svg></title><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"
texts = st.text(max_size=30) | st.just(HOSTILE) | st.just("\u202ecod.exe\0\x1b[31m\ud800")


@given(st.dictionaries(texts, texts, max_size=3), texts, texts, texts)
@settings(max_examples=60, deadline=None)
def test_no_text_becomes_anything_else(
    mapping: dict[str, str], one: str, two: str, three: str
) -> None:
    step = StepRecord(0, 5500, 2, one, two, StepEffect.REFUSED, three)
    run = a_run(
        steps=(step,),
        outcomes=(Outcome(one, Status.REJECTED, two, three, one),),
        reaper=replace(reaper(), policy=two, reason=three),
    )
    run = replace(
        run, scenario=one, host=two, qemu=three, failure=one, profile=two, fingerprint=three,
        imported_from=one, environment={"accelerator": three, **mapping, "list": [one, two]},
        setup={"title": two, "why": three, "vm": mapping}, values={one: two},
    )  # fmt: skip
    page = plot_run(run)
    check(page)
    assert "\u202e" not in page and "\0" not in page and "\x1b" not in page


def test_a_run_that_was_measured_elsewhere_says_so() -> None:
    run = replace(a_run(), imported_from="guestperf: report.json")
    assert "imported from guestperf: report.json" in check(plot_run(run)).text()
    assert "imported from" not in plot_run(a_run())


def test_a_hostile_text_is_shown_as_it_is() -> None:
    run = replace(a_run(), failure=HOSTILE)
    assert HOSTILE in check(plot_run(run)).text().replace("  ", " ")
