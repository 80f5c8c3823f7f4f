"""The three policies, each by itself and within its guard."""

from __future__ import annotations

import doctest
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.engine.reaper import policies
from vmtune.engine.reaper.aimd import Aimd
from vmtune.engine.reaper.levels import CALM_ROUNDS, SLEEP_MS, Levels
from vmtune.engine.reaper.policies import MAX_COST_SHARE, begin
from vmtune.engine.reaper.predict import LENGTHEN_BY_MS, Predict
from vmtune.engine.reaper.settings import Pace, ReaperSettings, Round
from vmtune.model.tunables.rows.reaper import MIN_INTERVAL_MS, ReaperPolicy
from vmtune.testing import dirty_rate_traces as traces
from vmtune.testing import reaper_simulation as simulation

RING = 65536


def observed(*fills: float, elapsed_ms: float = 100, cost_ms: float = 1) -> Round:
    return Round(elapsed_ms, cost_ms, fills, RING)


def test_the_documented_example_holds() -> None:
    assert doctest.testmod(policies).failed == 0


@pytest.mark.parametrize("policy", ReaperPolicy)
def test_where_a_full_ring_can_end_the_guest_no_policy_makes_a_pause(policy: ReaperPolicy) -> None:
    pace = begin(ReaperSettings(policy), unpaused=True)
    for fill in (0.0, 0.0, 0.9, 0.0):
        pace = pace.after(observed(fill, elapsed_ms=250, cost_ms=200))
        assert pace.interval_ms == MIN_INTERVAL_MS


# levels ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratio", "level"),
    [(0, 0), (0.09, 0), (0.1, 1), (0.2, 2), (0.29, 2), (0.3, 3), (0.4, 4), (0.5, 5), (0.8, 5)],
)
def test_a_ratio_wants_a_level(ratio: float, level: int) -> None:
    pace = Levels()
    for _ in range(len(SLEEP_MS)):
        pace = pace.after(observed(ratio))
    assert pace.level == level
    assert pace.interval_ms == SLEEP_MS[level]


def test_levels_rise_one_at_a_time() -> None:
    assert [Levels(n).after(observed(0.6)).level for n in range(6)] == [1, 2, 3, 4, 5, 5]


def test_levels_count_all_vcpus_together() -> None:
    assert Levels().after(observed(0.06, 0.06)).level == 1


def test_a_full_ring_raises_the_level_though_less_is_wanted() -> None:
    # Full by what can be used of a small ring; by its size the ratio wants level 4.
    full = Round(100, 1, (0.42,), 1024)
    assert Levels(4).after(full).level == 5
    assert Levels(5).after(full).level == 5


def test_levels_fall_only_after_more_than_five_wishes_in_a_row() -> None:
    pace = Levels(5)
    for _ in range(CALM_ROUNDS):
        pace = pace.after(observed(0))
        assert pace.level == 5
    for level in (4, 3, 2, 1, 0, 0):
        pace = pace.after(observed(0))
        assert pace.level == level


@pytest.mark.parametrize(("between", "begins_again"), [(0.35, False), (0.6, True)])
def test_speeding_up_begins_the_count_again_and_staying_does_not(
    between: float, begins_again: bool
) -> None:
    pace = Levels(3)
    for _ in range(CALM_ROUNDS):
        pace = pace.after(observed(0))
    pace = pace.after(observed(between))
    stands = pace.level
    for _ in range(CALM_ROUNDS):
        pace = pace.after(observed(0))
    assert (pace.level == stands) is begins_again


# aimd ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "ratio", "after"),
    [
        (1000, 0.81, 500),
        (1000, 0.8, 1000),
        (500, 0.21, 500),
        (500, 0.2, 520),
        (990, 0.0, 1000),
        (150, 3.0, 100),
        (100, 0.9, 100),
    ],
)
def test_the_sleep_is_halved_or_grows_by_20_ms(before: int, ratio: float, after: int) -> None:
    assert Aimd(before).after(observed(ratio)).interval_ms == after


# predict ---------------------------------------------------------------------------------


def settled(fill: float, rounds: int = 30, target: int = 60) -> Pace:
    """Predict after some rounds at a steady speed, *fill* of the usable ring in 100 ms."""
    settings = ReaperSettings(target_fill_percent=target, max_interval_ms=5000)
    pace: Pace = Predict.begin(settings)
    for _ in range(rounds):
        elapsed = pace.interval_ms + 1.0
        share = fill * elapsed / 100 * 64960 / RING
        pace = pace.after(observed(share, share / 2, elapsed_ms=elapsed))
    return pace


@pytest.mark.parametrize(("target", "expected"), [(60, 299), (30, 149), (80, 399)])
def test_at_a_steady_speed_the_fullest_ring_is_emptied_at_the_target(
    target: int, expected: int
) -> None:
    assert settled(0.2, target=target).interval_ms == pytest.approx(expected, abs=1)


def test_the_rounds_own_cost_comes_off_the_interval() -> None:
    cheap, dear = (settled(0.3).after(observed(0.3, cost_ms=cost)) for cost in (0, 40))
    assert cheap.interval_ms - dear.interval_ms == 40


def test_a_rise_is_expected_to_go_on() -> None:
    pace = settled(0.1)
    steady = pace.after(observed(0.1)).interval_ms
    risen = pace.after(observed(0.2)).interval_ms
    # Twice as fast would be half; it is expected to be three times as fast.
    assert risen == pytest.approx(steady / 3, rel=0.03)


def test_the_rise_of_one_vcpu_is_seen_though_another_slows_down() -> None:
    settings = ReaperSettings(max_interval_ms=5000)
    before = Predict.begin(settings).after(observed(0.3, 0.05))
    same = before.after(observed(0.3, 0.05)).interval_ms
    crossed = before.after(observed(0.05, 0.3)).interval_ms
    assert crossed < same


def test_a_full_ring_at_least_halves_the_interval() -> None:
    # The vCPU had been stopped: what was collected says too little. Nor is there a rise.
    settings = ReaperSettings(target_fill_percent=90)
    pace = Predict(settings, 800)
    for _ in range(2):
        pace = pace.after(observed(0.9, elapsed_ms=800))
    assert pace.interval_ms == 399


def test_quiet_lengthens_the_interval_slowly() -> None:
    pace = settled(0.5)
    intervals = [pace.interval_ms]
    passed = 0.0
    while pace.interval_ms < 1000:
        elapsed = pace.interval_ms + 1.0
        passed += elapsed
        pace = pace.after(observed(0.0, 0.0, elapsed_ms=elapsed))
        intervals.append(pace.interval_ms)
    assert all(0 <= later - sooner <= LENGTHEN_BY_MS for sooner, later in pairwise(intervals))
    assert passed > 3000
    assert len(intervals) < 60


def test_vcpus_may_come_and_go() -> None:
    pace = Predict.begin(ReaperSettings()).after(observed(0.5))
    more = pace.after(observed(0.5, 0.7, 0.1))
    assert len(more.speeds) == len(more.remembered) == 3
    fewer = more.after(observed(0.1))
    assert len(fewer.speeds) == len(fewer.remembered) == 1
    assert fewer.after(observed()).interval_ms == fewer.interval_ms + LENGTHEN_BY_MS


# all of them -----------------------------------------------------------------------------

ROUNDS = st.builds(
    Round,
    elapsed_ms=st.floats(1, 60_000),
    cost_ms=st.floats(0, 5000),
    fills=st.lists(st.floats(0, 50), max_size=4).map(tuple),
    ring_entries=st.sampled_from([1024, 4096, 65536]),
)


@st.composite
def all_settings(draw: st.DrawFn) -> ReaperSettings:
    least, most = sorted((draw(st.integers(50, 60_000)), draw(st.integers(50, 60_000))))
    policy = draw(st.sampled_from(ReaperPolicy))
    return ReaperSettings(policy, least, most, draw(st.integers(10, 90)))


@given(all_settings(), st.lists(ROUNDS, max_size=20))
def test_bounds_are_always_honoured(settings: ReaperSettings, rounds: list[Round]) -> None:
    pace: Pace = begin(settings)
    for each in rounds:
        assert settings.min_interval_ms <= pace.interval_ms <= settings.max_interval_ms
        pace = pace.after(each)
    assert settings.min_interval_ms <= pace.interval_ms <= settings.max_interval_ms


@given(all_settings(), st.lists(ROUNDS, max_size=8), ROUNDS, st.floats(1, 10))
def test_a_fuller_round_never_leads_to_a_longer_interval(
    settings: ReaperSettings, past: list[Round], last: Round, by: float
) -> None:
    pace: Pace = begin(settings)
    for each in past:
        pace = pace.after(each)
    fuller = replace(last, fills=tuple(fill * by for fill in last.fills))
    assert pace.after(fuller).interval_ms <= pace.after(last).interval_ms


@given(all_settings(), st.lists(ROUNDS, max_size=8), ROUNDS, st.floats(0, 500))
def test_a_round_that_costs_more_never_leads_to_more_rounds_than_one_that_costs_less(
    settings: ReaperSettings, past: list[Round], last: Round, more_ms: float
) -> None:
    pace = begin(settings)
    for each in past:
        pace = pace.after(each)
    dearer = replace(last, cost_ms=last.cost_ms + more_ms)
    assert pace.after(dearer).affordable_ms >= pace.after(last).affordable_ms


@given(all_settings(), st.lists(ROUNDS, max_size=8), ROUNDS)
def test_predict_does_not_wait_longer_after_reaching_its_target(
    settings: ReaperSettings, past: list[Round], last: Round
) -> None:
    pace = Predict.begin(settings)
    for each in past:
        pace = pace.after(each)
    usable = last.fullest * last.ring_entries / (last.ring_entries - 576)
    if usable >= settings.target_fill_percent / 100:
        longest = max(last.elapsed_ms, settings.min_interval_ms)
        assert pace.after(last).interval_ms <= longest


# the guard -------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ReaperPolicy)
def test_rounds_that_take_long_are_done_less_often(policy: ReaperPolicy) -> None:
    pace = begin(ReaperSettings(policy, max_interval_ms=10_000))
    for _ in range(20):
        pace = pace.after(observed(5.0, elapsed_ms=600, cost_ms=500))
    assert 500 / (500 + pace.interval_ms) == pytest.approx(MAX_COST_SHARE)


def test_one_slow_round_changes_nothing_and_two_do() -> None:
    pace = begin(ReaperSettings())
    for cost in (2.0, 2.0, 100.0):
        pace = pace.after(observed(5.0, cost_ms=cost))
    assert pace.affordable_ms < 50
    assert pace.after(observed(5.0, cost_ms=100.0)).affordable_ms == pytest.approx(400)


def test_the_guard_lets_go_when_rounds_are_quick_again() -> None:
    pace = begin(ReaperSettings())
    for cost in (100.0, 100.0, 100.0, 2.0, 2.0):
        pace = pace.after(observed(5.0, cost_ms=cost))
    assert pace.interval_ms == 50


# the beginning ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "interval_ms"), [("predict", 50), ("levels", 80), ("aimd", 100)]
)
def test_every_policy_begins_at_its_shortest_interval(policy: str, interval_ms: int) -> None:
    assert begin(ReaperSettings(ReaperPolicy(policy))).interval_ms == interval_ms


def test_no_ring_fills_in_the_first_second_of_a_fast_guest() -> None:
    # 226,000 pages/s fill a ring of 65,536 in 0.29 s: too late for who begins at the stock second.
    trace = traces.constant("fast", [226_000], 1000)
    paces = {policy.value: ReaperSettings(policy) for policy in ReaperPolicy}
    results = simulation.compare(trace, paces, 65_536)
    assert results.pop("stock").ring_full > 0
    assert {name: result.ring_full for name, result in results.items()} == dict.fromkeys(paces, 0)
