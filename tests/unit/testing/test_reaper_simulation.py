"""The model of rings and rounds, and the policies on all traces."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.dirty_rates.catalogue import HERE, HOPELESS, RECORDED, recording, scenarios
from vmtune.engine.reaper.aimd import LEAST_MS, Aimd
from vmtune.engine.reaper.levels import FASTEST, Levels
from vmtune.engine.reaper.policies import begin
from vmtune.engine.reaper.settings import Pace, ReaperSettings, Round
from vmtune.model.host.dirty_rates import usable_entries
from vmtune.model.tunables.rows.reaper import ReaperPolicy
from vmtune.testing import dirty_rate_traces as traces
from vmtune.testing.dirty_rate_traces import Trace
from vmtune.testing.reaper_simulation import Costs, Counted, Result, Stock, compare, simulate

FREE = Costs(0, 0, 0, 0)
POLICIES = {policy.value: ReaperSettings(policy) for policy in ReaperPolicy}


def test_a_ring_that_fills_between_two_rounds_is_counted_each_time() -> None:
    # 3520 usable entries at 10 a millisecond: full each 352 ms, twice before a second is over.
    result = simulate(traces.constant("c", [10_000], 10_000), Stock(), 4096, FREE)
    assert result.ring_full == 20
    assert result.rounds == 10
    assert result.stalls_ms == 0


def test_a_ring_that_is_emptied_in_time_never_fills() -> None:
    result = simulate(traces.constant("c", [10_000], 10_000), Stock(300), 4096, FREE)
    assert result.ring_full == 0
    assert result.rounds == 33


def test_a_full_ring_empties_the_others_too() -> None:
    fast, slow = [10_000.0], [9_000.0]
    both = simulate(traces.constant("c", fast + slow, 9_000), Stock(), 4096, FREE)
    alone = simulate(traces.constant("c", slow, 9_000), Stock(), 4096, FREE)
    assert alone.ring_full == 18
    # The fast ring's exits, at 352 and 704 ms, leave the slow one no time to fill.
    assert both.ring_full == 18


def test_a_vcpu_stands_still_at_a_full_ring_and_does_not_make_up_for_it() -> None:
    costs = Costs(0, 0, 0, exit_ms=100)
    result = simulate(traces.constant("c", [35_200], 10_000), Stock(), 4096, costs)
    # 100 ms to fill, 100 ms to stand still.
    assert result.ring_full == pytest.approx(50, abs=5)
    assert result.stalls_ms == pytest.approx(result.ring_full * 100)


def test_every_vcpu_is_kicked_by_every_round() -> None:
    costs = Costs(0, 0, kick_ms=0.5, exit_ms=0)
    result = simulate(traces.constant("c", [1, 1, 1], 4_000), Stock(), 4096, costs)
    assert result.stalls_ms == pytest.approx(4 * 3 * 0.5)


def test_a_page_is_in_the_ring_once() -> None:
    trace = traces.constant("c", [50_000], 5_000)
    small = Trace("small", trace.rows, working_set_pages=3000)
    assert simulate(trace, Stock(), 4096, FREE).ring_full > 0
    assert simulate(small, Stock(), 4096, FREE).ring_full == 0


def seen(trace: Trace) -> list[float]:
    """The fullest ring of each round, as a policy sees it."""
    fullest = []

    class Spy(Stock):
        def after(self, observed: Round) -> Spy:
            fullest.append(round(observed.fullest, 2))
            return self

    simulate(trace, Spy(), 4096, FREE)
    return fullest


def test_a_policy_sees_the_pages_of_ring_full_exits_too() -> None:
    assert seen(traces.constant("c", [10_240], 2_000)) == [2.5, 2.5]


def test_a_policy_sees_no_more_than_the_working_set() -> None:
    trace = Trace("small", traces.constant("c", [50_000], 2_000).rows, working_set_pages=2048)
    assert seen(trace) == [0.5, 0.5]


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(ReaperPolicy),
    st.sampled_from([1024, 4096, 65536]),
    st.lists(st.floats(0, 400_000), min_size=1, max_size=3),
    st.integers(1, 800),
)
def test_what_holds_of_every_run(
    policy: ReaperPolicy, entries: int, rates: list[float], every_ms: int
) -> None:
    trace = traces.bursts("b", rates, 1500, every_ms=every_ms, lasting_ms=(every_ms + 1) // 2)
    result = simulate(trace, begin(ReaperSettings(policy)), entries)
    dirtied = sum(sum(row) for row in trace.rows)
    assert result.ring_full <= dirtied / usable_entries(entries)
    assert result.rounds <= trace.duration_ms / 50
    assert all(50 <= interval <= 1000 for interval in result.intervals_ms)
    assert simulate(trace, begin(ReaperSettings(policy)), entries) == result


# traces ----------------------------------------------------------------------------------


def test_bursts_out_of_phase_never_come_together() -> None:
    trace = traces.bursts(
        "b", [1000, 1000], 4000, every_ms=1000, lasting_ms=300, out_of_phase=True, background=0
    )
    assert all(min(row) == 0 for row in trace.rows)
    assert sum(map(sum, trace.rows)) == pytest.approx(2 * 0.3 * 4000)


def test_jitter_is_the_same_each_time_and_stays_within_its_share() -> None:
    trace = traces.constant("c", [1000, 500], 1000)
    shaken = traces.jitter(trace, seed=1, share=0.25)
    assert shaken == traces.jitter(trace, seed=1, share=0.25)
    assert shaken.rows != trace.rows
    assert all(0.75 <= a <= 1.25 for a, _ in shaken.rows)


@pytest.mark.parametrize("rows", [(), ((),), ((1.0,), (1.0, 2.0)), ((-1.0,),)])
def test_what_is_no_trace_is_refused(rows: tuple[tuple[float, ...], ...]) -> None:
    with pytest.raises(ValueError, match="is not a trace"):
        Trace("t", rows)


def test_a_recording_keeps_every_page_and_the_time(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(
        '{"region_bytes": 8192, "elapsed_ms": [60.4, 60.4, 70.2], "measured_ms": [50, 50, 60],'
        ' "mib_per_s": [100, 0, 200]}'
    )
    trace = traces.read_recording(tmp_path / "r.json")
    assert trace.duration_ms == 191
    assert trace.working_set_pages == 2
    assert sum(map(sum, trace.rows)) == pytest.approx(256 * (100 * 0.05 + 200 * 0.06))


def test_recordings_side_by_side_are_as_long_as_the_shortest() -> None:
    each = [recording(name) for name in RECORDED]
    together = traces.side_by_side("all", each)
    assert together.vcpus == len(RECORDED)
    assert together.duration_ms == min(trace.duration_ms for trace in each) > 10_000
    assert together.working_set_pages == 65536


def test_every_recording_is_in_the_catalogue() -> None:
    assert {path.stem for path in HERE.glob("*.json")} == set(RECORDED)


# the policies on all traces --------------------------------------------------------------


@pytest.fixture(scope="module")
def table() -> dict[tuple[str, int], dict[str, Result]]:
    return {
        (trace.name, entries): compare(trace, POLICIES, entries) for trace, entries in scenarios()
    }


def total(table: dict[tuple[str, int], dict[str, Result]], arm: str, what: str) -> float:
    return sum(float(getattr(row[arm], what)) for row in table.values())


def test_predict_has_the_fewest_full_rings_with_no_more_rounds_than_levels(
    table: dict[tuple[str, int], dict[str, Result]],
) -> None:
    full = {arm: total(table, arm, "ring_full") for arm in ("stock", *POLICIES)}
    assert full["predict"] <= min(full["levels"], full["aimd"], full["stock"]), full
    assert total(table, "predict", "rounds") <= total(table, "levels", "rounds")


@pytest.mark.parametrize("policy", ReaperPolicy)
def test_no_policy_makes_any_trace_noticeably_worse_than_stock(
    table: dict[tuple[str, int], dict[str, Result]], policy: ReaperPolicy
) -> None:
    for (name, _), row in table.items():
        # Where no round comes in time, how many exits there are is chance.
        slack = 0.02 * row["stock"].ring_full if name == HOPELESS else 1
        assert row[policy.value].ring_full <= row["stock"].ring_full + slack, name


@pytest.mark.parametrize(
    "steady", ["steady, 4 vCPUs", "steady, ring 4096", "steady, ring 1024", "ramp, 2 vCPUs"]
)
def test_predict_keeps_steady_and_slowly_changing_rings_from_filling(
    table: dict[tuple[str, int], dict[str, Result]], steady: str
) -> None:
    (row,) = (row for (name, _), row in table.items() if name == steady)
    assert row["stock"].ring_full > 10
    assert row["predict"].ring_full == 0


def test_predict_comes_to_stocks_second_on_an_idle_guest(
    table: dict[tuple[str, int], dict[str, Result]],
) -> None:
    (row,) = (row for (name, _), row in table.items() if name == "idle, 4 vCPUs")
    assert row["predict"].intervals_ms[-1] == 1000
    assert row["predict"].rounds <= 2 * row["stock"].rounds


@pytest.mark.parametrize("pace", [Levels(FASTEST), Aimd(LEAST_MS)])
def test_a_round_finds_less_than_the_guest_wrote_where_the_migration_empties_the_rings(
    pace: Pace,
) -> None:
    """With the round's own pages a policy slows down; with all it stays as it is."""
    trace = traces.constant("c", [600_000], 20_000)
    every = {
        counted: simulate(trace, pace, 65536, FREE, counted, synchronised_every_ms=30)
        for counted in Counted
    }
    alone = simulate(trace, pace, 65536, FREE, Counted.OWN)
    assert every[Counted.ALL].rounds == pytest.approx(alone.rounds, rel=0.02)
    assert every[Counted.OWN].rounds < every[Counted.ALL].rounds / 2


def test_a_reaper_inside_counts_full_rings_themselves() -> None:
    """Though a round of its own finds next to nothing after them."""
    trace = traces.constant("c", [100_000], 5_000)
    result = simulate(trace, Levels(0), 4096, FREE, Counted.OWN)
    assert result.intervals_ms[1:4] == (500, 250, 125)
