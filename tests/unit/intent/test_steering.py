"""Steering, by simulated migrations."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vmtune.forecast.course import Conditions, Course, Moment, follow
from vmtune.forecast.dirty_curve import concave
from vmtune.intent import setting
from vmtune.intent.bounds import first_limit_ms, highest_limit_ms
from vmtune.intent.setting import Standing
from vmtune.intent.steering import Abilities, Relax, Steering
from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.migration.intent import Goal, Intent, Means, Otherwise, still_ms
from vmtune.model.migration.stated_intent import Beyond
from vmtune.model.migration.steps import SetValues, StepAction
from vmtune.testing.migration_simulation import MIB, Guest, Simulated, run

ALL = Abilities(auto_converge=True, postcopy=True)
PATH = 100 * MIB


def guest(mib_per_s: float, region_mib: float = 400, burst: float = 0.0) -> Guest:
    def rate(at_s: float) -> float:
        return mib_per_s * MIB * (1 + burst * math.sin(at_s / 3))

    return Guest(1024 * MIB, region_mib * MIB, rate)


def steered(intent: Intent, there: Guest, able: Abilities = ALL, **more: int) -> Simulated:
    return run(there, PATH, Steering(intent, able, first_limit_ms(intent)), **more)


def actions(done: Simulated) -> list[object]:
    return [act.action for act in done.acts]


def test_an_idle_guest_is_left_alone() -> None:
    done = steered(Intent(500, 60, 20, may=(Means.THROTTLE,)), guest(0))
    assert (done.outcome, done.acts) == ("completed", ())


def test_the_limit_rises_as_far_as_needed_and_no_further() -> None:
    """20 MiB that are always dirty take 200 ms: the limit has to exceed that, and not reach 780."""
    done = steered(Intent(1000, 60), guest(300, region_mib=20))
    assert done.outcome == "completed"
    assert 190 <= done.silence_ms <= done.limits[-1] < 500


def test_the_limit_rises_where_it_should_have_ended() -> None:
    """QEMU takes the path for a fifth slower than samples show: what is computed never suffices."""
    intent = Intent(1000, 60)
    start = Steering(intent, ALL, first_limit_ms(intent))
    done = run(guest(300, region_mib=20), PATH, start, estimated_share=0.8)
    assert done.outcome == "completed"
    assert done.total_ms < 30_000
    assert any("should have ended" in act.reason for act in done.acts)
    assert done.limits[-1] <= highest_limit_ms(intent)


def test_a_limit_within_the_silence_saves_time() -> None:
    intent = Intent(1000)
    low = run(guest(80), PATH, Steering(intent, ALL, highest_limit_ms(intent)))
    done = steered(intent, guest(80))
    assert done.outcome == "completed"
    assert done.total_ms <= low.total_ms * 1.25


def test_throttles_only_where_the_limit_does_not_suffice() -> None:
    intent = Intent(300, 120, 60, may=(Means.THROTTLE,))
    done = steered(intent, guest(150))
    assert done.outcome == "completed"
    assert 30 <= max(done.throttled) <= 60
    assert max(steered(intent, guest(40)).throttled) <= 1


@pytest.mark.parametrize("busy_share", [0.35, 0.4, 0.6, 1.0])
@pytest.mark.parametrize("mib_per_s", [20, 22])
def test_there_may_be_time_for_one_throttle_only(mib_per_s: float, busy_share: float) -> None:
    """A mild throttle takes nothing from a guest that needs half of its CPU time. That shows two
    passes later, when a hard one comes too late."""
    there = Guest(
        *(256 * MIB, 99 * MIB, lambda _: mib_per_s * MIB),
        used_bytes=115 * MIB,
        busy_share=busy_share,
    )
    intent = Intent(500, 20, 80, may=(Means.THROTTLE,))
    start = Steering(intent, ALL, first_limit_ms(intent), beyond=Beyond(150, 20))
    done = run(there, 24 * MIB, start)
    assert done.outcome == "completed"
    assert max(done.throttled) <= 80
    roomy = replace(start, intent=replace(intent, deadline_s=120))
    later = run(there, 24 * MIB, roomy)
    assert later.outcome == "completed"
    assert later.acts[0].action != done.acts[0].action, "with more time it begins more mildly"


def test_holds_the_throttle_back_first() -> None:
    intent = Intent(300, 120, 60, may=(Means.THROTTLE,))
    done = run(guest(0), PATH, Steering(intent, ALL, 75, held=False))
    (act,) = done.acts
    assert act.action == SetValues((("max_cpu_throttle_percent", 1),))


def test_gives_up_at_the_deadline_and_leaves_the_guest() -> None:
    done = steered(Intent(100, 40), guest(300))
    assert actions(done)[-1] is StepAction.ABORT
    assert 39_000 <= done.total_ms <= 40_100


def test_postcopy_keeps_the_deadline_where_it_may_be_used() -> None:
    intent = Intent(100, 40, may=(Means.POSTCOPY,))
    done = steered(intent, guest(300))
    assert done.outcome == "postcopy"
    assert 25_000 <= done.total_ms <= 40_000, "not before it is needed"
    assert steered(intent, guest(20)).outcome == "completed"
    assert steered(intent, guest(300), Abilities()).outcome == "aborted"


def test_a_pause_keeps_the_deadline_where_silence_is_no_goal() -> None:
    done = steered(Intent(None, 40, may=(Means.PAUSE,)), guest(300))
    assert done.outcome == "paused"
    assert done.total_ms <= 40_000


def test_goals_are_relaxed_in_their_order() -> None:
    order = (Goal.SLOWDOWN, Goal.SILENCE)
    intent = Intent(100, 60, 10, None, (Means.THROTTLE,), Otherwise.RELAX, order)
    done = steered(intent, guest(150, region_mib=300), Abilities())
    assert [a.goal for a in actions(done) if isinstance(a, Relax)] == list(order)
    assert done.outcome == "completed"


def test_gives_up_at_the_deadline_where_nothing_is_left_to_relax() -> None:
    intent = Intent(100, 20, None, None, (), Otherwise.RELAX, (Goal.SILENCE,))
    done = steered(intent, guest(300), Abilities(downtime_limit=False), most_s=60)
    assert actions(done) == [Relax(Goal.SILENCE), StepAction.ABORT]
    assert 19_000 <= done.total_ms <= 20_100


def test_keeps_trying_beyond_the_deadline() -> None:
    intent = Intent(100, 20, otherwise=Otherwise.KEEP_TRYING)
    done = steered(intent, guest(300), most_s=60)
    assert done.outcome == "running"
    assert Relax(Goal.DEADLINE) in actions(done)
    assert StepAction.ABORT not in actions(done)


def test_takes_a_minimum_of_what_remains() -> None:
    """The rate swings between 0 and 240 MiB/s; without a throttle, and a limit that suffices only
    in the lower part of the swing."""
    done = steered(Intent(900), guest(120, burst=1.0), most_s=120)
    assert done.outcome == "completed"
    assert done.silence_ms <= 900


@pytest.mark.parametrize("high_s", [6, 9])
def test_a_stalled_migration_waits_for_a_minimum_where_no_setting_would_end_it(high_s: int) -> None:
    """For two seconds the guest writes at less than half of its rate. By what it dirties in most
    passes no limit within the silence would do: it rises to what remained at the least."""

    def rate(at_s: float) -> float:
        return (150 if at_s % (high_s + 2) < high_s else 60) * MIB

    intent = Intent(3000)
    done = steered(intent, Guest(1024 * MIB, 300 * MIB, rate), most_s=120)
    assert done.outcome == "completed"
    assert any("the least that remained lately" in act.reason for act in done.acts)
    assert done.silence_ms <= done.limits[-1] <= highest_limit_ms(intent)


@pytest.mark.parametrize("hand_over_ms", [1000, 15_000, 25_000])
def test_another_process_goes_on(hand_over_ms: int) -> None:
    intent = Intent(300, 120, 60, may=(Means.THROTTLE,))
    done = steered(intent, guest(150), hand_over_ms=hand_over_ms)
    assert done.outcome == "completed"
    assert max(done.throttled) <= 60


@st.composite
def intents(draw: st.DrawFn) -> Intent:
    silence = draw(st.none() | st.integers(20, 3000))
    slowdown = draw(st.none() | st.integers(1, 99))
    deadline = draw(st.integers(5, 90))
    able = [m for m in Means if m is not Means.PAUSE or silence is None]
    may = draw(st.sets(st.sampled_from(able)))
    otherwise = draw(st.sampled_from([Otherwise.REFUSE, Otherwise.KEEP_TRYING]))
    return Intent(silence, deadline, slowdown, None, tuple(m for m in Means if m in may), otherwise)


@settings(max_examples=120, deadline=None)
@given(
    intents(),
    st.floats(0, 400),
    st.floats(5, 900),
    st.floats(0, 1),
    st.booleans(),
    st.booleans(),
    st.integers(0, 60_000),
)
def test_no_promise_is_broken(
    intent: Intent,
    dirty: float,
    region: float,
    burst: float,
    auto_converge: bool,
    postcopy: bool,
    hand_over_ms: int,
) -> None:
    able = Abilities(auto_converge, postcopy)
    there = guest(dirty, region, burst)
    done = steered(intent, there, able, most_s=100, hand_over_ms=hand_over_ms)
    highest = highest_limit_ms(intent)
    assert all(a <= b for a, b in zip(done.limits, done.limits[1:], strict=False))
    assert done.limits[-1] <= highest
    if done.outcome == "completed" and intent.max_silence_ms is not None:
        assert done.silence_ms <= intent.max_silence_ms
    # QEMU takes no throttle of 0 % once one is set.
    assert max(done.throttled) <= max(1, intent.most_throttle_percent)
    if intent.otherwise is Otherwise.REFUSE and done.outcome != "paused":
        assert done.outcome != "running"
        assert intent.deadline_s is not None
        assert done.total_ms <= intent.deadline_s * 1000 + 3100
    assert (done.outcome == "postcopy") <= (intent.allows(Means.POSTCOPY) and postcopy)
    assert (done.outcome == "paused") <= intent.allows(Means.PAUSE)
    assert all(act.reason for act in done.acts)


@pytest.mark.parametrize("growth_per_s", [0.0, 0.004, 0.008])
@pytest.mark.parametrize("mib_per_s", [80, 100, 120, 150])
def test_a_deadline_is_kept_though_the_guest_comes_to_write_more(
    mib_per_s: int, growth_per_s: float
) -> None:
    """What is expected at one synchronisation is too little for the next."""

    def rate(at_s: float) -> float:
        return mib_per_s * MIB * (1 + growth_per_s * at_s)

    intent = Intent(500, 40, 95, may=(Means.THROTTLE,), otherwise=Otherwise.KEEP_TRYING)
    done = steered(intent, Guest(1024 * MIB, 400 * MIB, rate))
    assert done.outcome == "completed"
    assert done.total_ms <= 40_000


DEMO_PATH = 32 * MIB
"""Of the guest below, the path carries the region in 2 s, and the guest writes to it in 0.45 s."""


def measured_before(there: Guest) -> tuple[DirtyPoint, ...]:
    """The curve that a probe would find, at its windows."""
    rate = there.rate(0) / 1000
    return tuple(DirtyPoint(ms, min(there.region_bytes, rate * ms)) for ms in (64, 256, 1024, 4096))


def flat_guest(mib_per_s: float, region_mib: float, swing: float, seed: int) -> Guest:
    used = (region_mib + 4) * MIB
    return Guest(256 * MIB, region_mib * MIB, lambda _: mib_per_s * MIB, used, swing, seed)


@pytest.mark.parametrize("known", [True, False], ids=["measured before", "not measured"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("mib_per_s", "region_mib"), [(143, 64), (143, 40), (80, 64), (300, 64)])
def test_a_guest_that_has_written_all_long_before_a_pass_ends_is_not_taken_for_a_slow_one(
    mib_per_s: float, region_mib: float, seed: int, known: bool
) -> None:
    """Each pass dirties as much as it sends, so that the guest seems to write as fast as the path
    carries: a little throttling would be enough. It is not, and each time a little more was set."""
    there = flat_guest(mib_per_s, region_mib, 0.4, seed)
    intent = Intent(500, 30, 99, may=(Means.THROTTLE,), otherwise=Otherwise.KEEP_TRYING)
    curve = measured_before(there) if known else ()
    start = Steering(intent, ALL, first_limit_ms(intent), held=False, curve=curve)
    done = run(there, DEMO_PATH, start, sampled_every_ms=100)
    assert done.outcome == "completed"
    assert done.total_ms <= (12_000 if known else 24_000)
    assert done.silence_ms <= 500
    most = highest_limit_ms(intent)
    turn_ms = still_ms(max(done.throttled))
    assert done.limits[0] <= done.limits[-1] <= most
    assert done.limits[-1] + turn_ms >= most, "as high as the throttled guest's turns let it be"
    assert all(a <= b for a, b in zip(done.throttled, done.throttled[1:], strict=False))


@pytest.mark.parametrize("share", [0.7, 0.85, 0.95, 1.0])
def test_a_guest_that_writes_about_as_fast_as_the_path_loses_no_more_than_by_auto_converge(
    share: float,
) -> None:
    """Of many guests together, each with its own silence, deadline and swings."""
    ours = theirs = 0.0
    for factor, silence, deadline, seed in product((1.5, 3, 5), (300, 500, 1000), (30, 60), (0, 1)):
        there = flat_guest(32 * share, 32 * factor, 0.3, seed)
        intent = Intent(silence, deadline, 99, may=(Means.THROTTLE,))
        curve = measured_before(there)
        start = Steering(intent, ALL, first_limit_ms(intent), held=False, curve=curve)
        done = run(there, DEMO_PATH, start, sampled_every_ms=100)
        assert done.outcome == "completed"
        assert done.total_ms <= deadline * 1000
        assert done.silence_ms <= silence
        ours += done.lost_s
        unsteered = Steering(intent, ALL, 300, done=True)
        theirs += run(there, DEMO_PATH, unsteered, auto_converge=True).lost_s
    assert ours <= theirs


def test_a_throttle_is_taken_back_once_the_guest_writes_little() -> None:
    def rate(at_s: float) -> float:
        return (95 if at_s < 100 else 60) * MIB

    intent = Intent(300, 600, 40, may=(Means.THROTTLE,))
    done = steered(intent, Guest(8192 * MIB, 8000 * MIB, rate))
    assert done.outcome == "completed"
    reasons = [act.reason for act in done.acts]
    assert "it ends early enough without throttling" in reasons, reasons


def test_postcopy_comes_in_time_though_an_end_is_expected() -> None:
    """The guest writes ever more: each time the end is expected, and does not come."""

    def rate(at_s: float) -> float:
        return 60 * MIB * (1 + at_s / 12)

    intent = Intent(100, 40, may=(Means.POSTCOPY,))
    done = steered(intent, Guest(1024 * MIB, 900 * MIB, rate))
    assert done.total_ms <= 40_000
    assert done.outcome in ("postcopy", "completed")


def test_a_turn_of_the_throttle_is_left_of_the_silence() -> None:
    """The guest may stand still for a turn just before it is stopped: both are one silence."""
    there = flat_guest(143, 64, 0.0, 0)
    intent = Intent(500, 30, 99, may=(Means.THROTTLE,))
    start = Steering(intent, ALL, first_limit_ms(intent), curve=measured_before(there))
    done = run(there, DEMO_PATH, start, sampled_every_ms=100)
    assert done.outcome == "completed"
    assert max(done.throttled) >= 90
    assert done.limits[-1] + still_ms(max(done.throttled)) <= highest_limit_ms(intent)


@pytest.mark.parametrize("mib_per_s", [20, 90, 110, 300])
def test_no_course_is_followed_twice_at_a_synchronisation(
    mib_per_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service steers many migrations: most of what steering costs is courses."""
    there = guest(mib_per_s)
    now = Conditions(PATH, 300)
    moment = Moment(400 * MIB, 1000.0)
    curve = concave([DirtyPoint(1000.0, mib_per_s * MIB), DirtyPoint(4000.0, there.region_bytes)])
    stands = Standing(curve, moment, now, 20_000.0, 4_000.0)
    followed: list[object] = []

    def counted(*what: Any) -> Course:
        followed.append(what)
        return follow(*what)

    monkeypatch.setattr(setting, "follow", counted)
    scope = setting.Scope(50, 300, 0, 80)
    first = setting.choose_setting(scope, stands)
    assert setting.choose_setting(scope, stands) == first
    setting.without_throttle(replace(scope, throttle_percent=20), stands)
    assert len(followed) == len(set(followed))
