"""Throttling by QEMU's dirty limit: when it is chosen, and steering with it, simulated."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples.samples import make_samples
from tests.unit.intent.test_feasible import basis
from vmtune.intent.bounds import first_limit_ms, highest_limit_ms
from vmtune.intent.choosing import DIRTY_LIMIT, choose
from vmtune.intent.offer import Offer
from vmtune.intent.steering import Abilities, Steering
from vmtune.intent.throttling import UNLIMITED_MIB_PER_S, DirtyLimit
from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.migration.intent import Intent, Means
from vmtune.model.migration.steps import SetValues
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.rules import accept_values
from vmtune.model.tunables.tunable import Value
from vmtune.testing.migration_simulation import MIB, Guest, Simulated, run

PATH = 200 * MIB
RINGS = Offer(dirty_ring_entries=1024)
HANDS_OFF = {"dirty_limit": False}
HARD = Intent(500, 60, 99, may=(Means.THROTTLE,))


def values(intent: Intent, dirty: float, path: float, offer: Offer = RINGS) -> dict[str, Value]:
    return {c.tunable: c.value for c in choose(intent, basis(dirty, path), offer).choices}


def curve_of(mib_per_s: float, region_mib: float) -> tuple[DirtyPoint, ...]:
    return tuple(
        DirtyPoint(ms, min(region_mib, mib_per_s * ms / 1000) * MIB) for ms in (64, 256, 1024, 4096)
    )


def limit_of(mib_per_s: float, region_mib: float, entries: int = 1024) -> DirtyLimit:
    found = DirtyLimit.of(entries, curve_of(mib_per_s, region_mib))
    assert found is not None
    return found


def steered(
    intent: Intent, mib_per_s: float, region_mib: float = 800, entries: int = 1024, **more: float
) -> Simulated:
    speed, hand_over_ms = mib_per_s * MIB, int(more.pop("hand_over_ms", 0))
    there = Guest(
        2048 * MIB,
        region_mib * MIB,
        lambda _: speed,
        swing=more.pop("swing", 0.0),
        seed=int(more.pop("seed", 0)),
        vcpus=int(more.pop("vcpus", 1)),
        ring_bytes=entries * 4096,
    )
    able = Abilities(dirty_limit=limit_of(mib_per_s, region_mib, entries))
    curve = curve_of(mib_per_s, region_mib)
    start = Steering(intent, able, first_limit_ms(intent), curve=curve)
    return run(there, PATH, start, sampled_every_ms=100, hand_over_ms=hand_over_ms)


def limits(done: Simulated) -> list[int]:
    """The dirty limits that were set."""
    chosen = [dict(act.action.values) for act in done.acts if isinstance(act.action, SetValues)]
    return [int(str(each[DIRTY_LIMIT])) for each in chosen if DIRTY_LIMIT in each]


def test_it_is_chosen_where_qemu_has_it_and_the_path_is_fast_enough() -> None:
    found = values(HARD, 150, 150)
    assert (found["dirty_limit"], found[DIRTY_LIMIT]) == (True, UNLIMITED_MIB_PER_S)
    assert "auto_converge" not in found
    for other in (values(HARD, 150, 150, Offer()), values(HARD, 40, 40)):
        assert other["auto_converge"] is True
        assert "dirty_limit" not in other


def test_it_slows_a_guest_that_is_idle_for_most_of_the_time() -> None:
    """It holds back what is dirtied; a throttle of 75 % may take idle time only."""
    intent, there = Intent(500, 60, 75, may=(Means.THROTTLE,)), basis(300, 150)
    found = choose(intent, there, RINGS)
    assert found.judgement is not None and found.judgement.kept is True
    assert found.judgement.reason.endswith("of silence")
    assert "dirty_limit" in {choice.tunable for choice in found.choices}
    for other in (choose(intent, there, Offer()), choose(intent, there, RINGS, HANDS_OFF)):
        assert other.judgement is not None and other.judgement.kept is None
        assert other.judgement.reason.endswith(" % of its CPU time")


def test_auto_converge_is_chosen_where_the_dirty_limit_would_be_too_coarse() -> None:
    """Of 150 MiB/s, the 25 by which QEMU may miss are a sixth."""
    mild = Intent(500, 60, 40, may=(Means.THROTTLE,))
    assert values(mild, 150, 120)["auto_converge"] is True


def test_auto_converge_is_chosen_where_a_full_ring_takes_longer_than_the_silence() -> None:
    large = Offer(dirty_ring_entries=65536)
    assert values(HARD, 300, 150)["dirty_limit"] is True
    assert values(HARD, 300, 150, large)["auto_converge"] is True


@pytest.mark.parametrize("switch", ["auto_converge", "dirty_limit"])
def test_who_throttles_himself_is_left_to_it(switch: str) -> None:
    found = choose(HARD, basis(150, 150), RINGS, {switch: True})
    assert found.pinned == (switch,)
    assert {choice.tunable for choice in found.choices} == {"downtime_limit_ms"}


def test_who_switches_the_dirty_limit_off_is_throttled_otherwise() -> None:
    found = choose(HARD, basis(150, 150), RINGS, HANDS_OFF)
    chosen = {choice.tunable: choice.value for choice in found.choices}
    assert chosen["auto_converge"] is True
    assert "dirty_limit" not in chosen
    assert found.pinned == ("dirty_limit",)


def test_what_a_users_dirty_limit_withholds_counts() -> None:
    """Of 250 MiB/s, 50 are left: more is withheld than the intent allows."""
    pinned: dict[str, Value] = {"dirty_limit": True, DIRTY_LIMIT: 50}
    mild, hard = (
        choose(replace(HARD, max_slowdown_percent=most), replace(basis(250, 150), pinned=pinned),
               RINGS, pinned).judgement
        for most in (60, 90)
    )  # fmt: skip
    assert mild is not None and mild.kept is None
    assert hard is not None and hard.kept is True


def test_without_a_ring_or_a_measurement_there_is_none() -> None:
    assert DirtyLimit.of(0, curve_of(100, 800)) is None
    assert DirtyLimit.of(1024, ()) is None
    assert DirtyLimit.of(1024, (DirtyPoint(64, 0.0),)) is None


def test_a_guest_that_ends_by_itself_is_not_limited() -> None:
    assert limits(steered(HARD, 20)) == []


@pytest.mark.parametrize("mib_per_s", [250, 400, 800])
def test_it_ends_a_migration_that_would_not(mib_per_s: int) -> None:
    done = steered(HARD, mib_per_s)
    assert done.outcome == "completed"
    assert done.total_ms <= 60_000
    assert done.silence_ms <= 500
    assert min(limits(done)) < mib_per_s


@pytest.mark.parametrize("vcpus", [4, 6])
def test_what_is_withheld_says_how_fast_a_vcpu_writes(vcpus: int) -> None:
    """The first limit is for one vCPU that writes all: none of several reaches it."""
    done = steered(HARD, 400, vcpus=vcpus)
    assert done.outcome == "completed"
    assert any("was to be withheld" in act.reason for act in done.acts)
    assert limits(done)[-1] < 400 / vcpus


def test_no_limit_is_lower_than_what_fills_a_ring_in_time() -> None:
    """Each of three vCPUs writes less than a ring in a second: QEMU sees none wait."""
    intent = Intent(None, 44, 48, may=(Means.THROTTLE,))
    done = steered(intent, 737, 73, 65536, vcpus=3, swing=0.125)
    assert limits(done) == [567, 437, 336, 320]
    assert max(done.throttled) == 0


def test_another_process_goes_on() -> None:
    done = steered(HARD, 400, hand_over_ms=20_000)
    assert done.outcome == "completed"
    assert done.total_ms <= 60_000


@settings(max_examples=80, deadline=None)
@given(
    st.none() | st.integers(100, 3000),
    st.integers(20, 90),
    st.integers(1, 99),
    st.floats(5, 1000),
    st.floats(10, 1500),
    st.sampled_from([1024, 4096, 65536]),
    st.integers(1, 8),
    st.integers(0, 60_000),
    st.floats(0, 0.2),
    st.integers(0, 9),
)
def test_no_promise_is_broken(
    silence: int | None,
    deadline: int,
    slowdown: int,
    mib_per_s: float,
    region: float,
    entries: int,
    vcpus: int,
    hand_over_ms: int,
    swing: float,
    seed: int,
) -> None:
    intent = Intent(silence, deadline, slowdown, may=(Means.THROTTLE,))
    more = {"vcpus": vcpus, "hand_over_ms": hand_over_ms, "swing": swing, "seed": seed}
    done = steered(intent, mib_per_s, region, entries, **more)
    assert done.limits[-1] <= highest_limit_ms(intent)
    if done.outcome == "completed" and silence is not None:
        assert done.silence_ms <= silence
    assert max(done.throttled) <= slowdown + 5  # QEMU overshoots where the guest swings
    assert done.outcome in ("completed", "aborted")
    assert done.total_ms <= deadline * 1000 + 3100
    assert all(1 <= limit <= UNLIMITED_MIB_PER_S for limit in limits(done))


@settings(max_examples=80, deadline=None)
@given(
    st.none() | st.integers(1, 5000),
    st.integers(1, 99),
    st.floats(1, 5000),
    st.sampled_from([1024, 4096, 65536]),
    st.floats(20, 2000),
)
def test_choices_fit_together_and_keep_the_slowdown(
    silence: int | None, slowdown: int, dirty: float, entries: int, path: float
) -> None:
    intent = Intent(silence, 60, slowdown, may=(Means.THROTTLE,))
    found = choose(intent, basis(dirty, path), Offer(dirty_ring_entries=entries))
    chosen = {choice.tunable: choice.value for choice in found.choices}
    assert accept_values(chosen, BUILT_IN) == chosen
    assert all(choice.reason for choice in found.choices)
    assert not ({"auto_converge", "dirty_limit"} <= set(chosen))
    limit = limit_of(dirty, 800, entries)
    for percent in range(1, limit.most_percent(intent) + 1):
        assert limit.percent(limit.mib_per_s(percent)) <= slowdown


def test_a_ring_that_is_emptied_before_it_is_full_holds_nobody_back() -> None:
    """Of 256 MiB, at 250 MiB/s: QEMU says that vCPUs would wait for seconds, and none does."""
    large = limit_of(250, 800, 65536)
    assert large.most_percent(HARD) == 0
    assert limit_of(2000, 4000, 65536).most_percent(Intent(1000, 60, 99, may=HARD.may)) > 50
    assert values(HARD, 250, 150, Offer(dirty_ring_entries=65536))["auto_converge"] is True


@pytest.mark.parametrize(
    ("waits_us", "fills_us", "percent"),
    [(0, 0, 0), (30_000, 10_000, 75), (10_825_982, 1_153_153, 0)],
)
def test_what_qemu_withholds_counts_where_rings_fill(
    waits_us: int, fills_us: int, percent: float
) -> None:
    (sample, *_) = make_samples(1)
    limited = replace(
        sample,
        throttle_percent=0,
        dirty_limit_throttle_us=waits_us,
        dirty_limit_ring_full_us=fills_us,
    )
    assert limited.withheld_percent == percent
    assert replace(limited, throttle_percent=90).withheld_percent == 90
