"""Whether an intent can be kept, and what is offered where it cannot."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vmtune.forecast.path import Throughput
from vmtune.forecast.probe import DirtyProbe
from vmtune.forecast.ranges import Range
from vmtune.intent.bounds import first_limit_ms, highest_limit_ms
from vmtune.intent.feasible import Basis, difference, judge, nearest
from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.migration.intent import (
    HARMLESS,
    Goal,
    Intent,
    Means,
    dump_intent,
    parse_intent,
)
from vmtune.model.migration.steps import AfterSeconds, SetValues, Step, StepAction

MIB = 1 << 20


def basis(dirty_mib_per_s: float, path_mib_per_s: float = 100, region_mib: float = 400) -> Basis:
    """A guest that uses 1 GiB and writes at a rate to a region, over and over."""
    points = tuple(
        DirtyPoint(ms, min(region_mib, dirty_mib_per_s * ms / 1000) * MIB)
        for ms in (64, 512, 4096, 8192)
    )
    probe = DirtyProbe(points, 4096 * MIB, 1064 * MIB, datetime.now(UTC), 17_000)
    path = Range.exactly(path_mib_per_s * MIB)
    return Basis(probe, Throughput(path, path, 3))


def test_an_idle_guest_keeps_a_deadline_that_its_memory_allows() -> None:
    assert judge(Intent(100, 12), basis(0)).kept is True
    assert judge(Intent(100, 5), basis(0)).kept is False


def test_a_first_pass_is_not_shortened_by_xbzrle() -> None:
    """It sends what changed of a page since it was sent."""
    packed = replace(basis(20), compressed=True)
    shorter, whole = (judge(Intent(100, 60), each) for each in (
        packed, replace(packed, deltas=True)
    ))  # fmt: skip
    assert shorter.total_ms is not None
    assert whole.total_ms is not None
    assert shorter.total_ms < 8000
    assert 10_000 < whole.total_ms < 13_000


def test_a_deadline_just_missed_is_not_refused() -> None:
    found = judge(Intent(100, 10), basis(0))
    assert found.total_ms is not None
    assert 10_000 < found.total_ms < 11_000
    assert found.kept is None


def test_the_disks_are_copied_within_the_deadline() -> None:
    """It is one for the whole migration, as steering has it."""
    found = judge(Intent(100, 30), replace(basis(0), copy_ms=15_000))
    assert (found.kept, found.total_ms) == (True, pytest.approx(25_500, rel=0.1))
    assert "(15 s for the disks)" in found.reason
    found = judge(Intent(100, 30), replace(basis(0), copy_ms=60_000))
    assert found.kept is False
    assert found.total_ms is not None and found.total_ms > 60_000
    rescued = Intent(100, 30, may=(Means.POSTCOPY,))
    assert judge(rescued, basis(300)).kept is True
    assert judge(rescued, replace(basis(300), copy_ms=25_000)).kept is False
    longer = nearest(Intent(100, 30), replace(basis(0), copy_ms=60_000))[0].deadline_s
    assert longer is not None and longer > 70


def test_a_silence_that_holds_what_the_guest_works_on_is_kept() -> None:
    busy = basis(200, region_mib=50)
    assert judge(Intent(300), busy).kept is False
    assert judge(Intent(900), busy).kept is True


def test_throttling_is_needed_only_where_nothing_less_suffices() -> None:
    may = (Means.THROTTLE,)
    slow = judge(Intent(300, 60, 80, may=may), basis(150))
    assert (slow.kept, slow.needs) == (True, Means.THROTTLE)
    assert judge(Intent(300, 60, 60, may=may), basis(20)).needs is None
    assert judge(Intent(300, 60, 60, may=()), basis(150)).kept is False


def test_what_a_throttle_does_depends_on_the_guests_cpu_time() -> None:
    """One that needs half of it does 0.8 of its work under a throttle of 60 %: too much here."""
    found = judge(Intent(300, 60, 60, may=(Means.THROTTLE,)), basis(150))
    assert (found.kept, found.needs) == (None, Means.THROTTLE)
    percent = int(found.reason.partition("needs at least ")[2].partition(" %")[0])
    assert 60 < percent < 90


def test_a_promise_says_how_much_cpu_time_the_guest_has_to_need() -> None:
    """Under a throttle of 80 % it has 20 %."""
    found = judge(Intent(300, 60, 80, may=(Means.THROTTLE,)), basis(150))
    assert found.kept is True
    assert found.reason.endswith(", if the guest needs at least 31 % of its CPU time")


def test_a_qemu_that_may_not_throttle_any_more_is_said_to() -> None:
    intent = Intent(300, 60, 80, may=(Means.THROTTLE,))
    found = judge(intent, replace(basis(150), throttle_in_doubt=True))
    assert found.kept is None
    assert found.reason.endswith("until the VM is restarted or has moved")
    for sure in (
        judge(intent, replace(basis(20), throttle_in_doubt=True)),
        judge(intent, replace(basis(150), throttle_in_doubt=True, by_time=False)),
    ):
        assert sure.kept is True


def test_means_that_cannot_be_used_are_neither_counted_nor_offered() -> None:
    busy = basis(200, region_mib=50)
    intent = Intent(300, 60, 80, may=(Means.THROTTLE, Means.POSTCOPY))
    assert judge(intent, busy).kept is True
    neither = replace(busy, means=frozenset(HARMLESS))
    assert judge(intent, neither).kept is False
    assert nearest(replace(intent, may=()), busy)
    for offer in nearest(replace(intent, may=()), neither):
        assert offer.may == ()


def test_a_throttle_begins_with_the_second_synchronisation() -> None:
    """QEMU heeds none before: two passes go by, and the third is the first that dirties less."""
    throttled = basis(150).course(300, 80)
    assert throttled.ends
    assert throttled.left_ms > 1.7 * basis(0).course(300, 0).left_ms


def test_postcopy_counts_only_where_it_may_be_used() -> None:
    busy = basis(300)
    assert judge(Intent(100, 60), busy).kept is False
    found = judge(Intent(100, 60, may=(Means.POSTCOPY,)), busy)
    assert (found.kept, found.needs) == (True, Means.POSTCOPY)
    assert judge(Intent(100, 5, may=(Means.POSTCOPY,)), busy).kept is False


def test_a_pause_ends_it_where_silence_is_no_goal() -> None:
    found = judge(Intent(None, 60, may=(Means.PAUSE,)), basis(300))
    assert (found.kept, found.needs) == (True, Means.PAUSE)


def test_the_nearest_intents_name_what_would_help() -> None:
    busy = basis(200, region_mib=50)
    intent = Intent(300, 60, 10, may=(Means.THROTTLE,))
    offers = nearest(intent, busy)
    said = [difference(intent, offer) for offer in offers]
    assert any(text.startswith("a silence of") for text in said), said
    assert any(text == "postcopy allowed" for text in said), said


def test_where_one_thing_is_not_enough_a_later_deadline_is_offered_with_it() -> None:
    """All of its memory takes 10 s, and it writes faster than is sent."""
    intent = Intent(100, 5)
    offers = nearest(intent, basis(300))
    said = [difference(intent, offer) for offer in offers]
    assert any(text.endswith("and postcopy allowed") for text in said), said
    assert all(text.startswith(("a silence of", "a deadline of")) for text in said)
    for offer in offers:
        assert judge(offer, basis(300)).kept is True
        assert 10 < (offer.deadline_s or 0) < 60


def test_values_that_are_set_and_break_a_goal_are_told_beforehand() -> None:
    intent = Intent(300, 60, max_bandwidth_bytes_per_s=50 * MIB)
    idle = basis(0)
    assert judge(intent, idle).kept is True
    for pinned, words in (
        ({"downtime_limit_ms": 500}, "a downtime limit of 500 ms"),
        ({"max_bandwidth_bytes_per_s": 80 * MIB}, "80 MiB/s"),
        ({"max_bandwidth_bytes_per_s": 0}, "no limit"),
    ):
        found = judge(intent, replace(idle, pinned=pinned))
        assert found.kept is False
        assert words in found.reason
    for action in (SetValues((("downtime_limit_ms", 500),)), StepAction.PAUSE):
        assert judge(intent, replace(idle, steps=(Step(AfterSeconds(9), action),))).kept is False
    fitting = {"downtime_limit_ms": 200, "max_bandwidth_bytes_per_s": 50 * MIB}
    assert judge(intent, replace(idle, pinned=fitting)).kept is True
    wide = replace(idle, pinned={"max_bandwidth_bytes_per_s": 80 * MIB})
    (offer,) = nearest(intent, wide)
    assert 80 * MIB <= (offer.max_bandwidth_bytes_per_s or 0) <= 90 * MIB
    assert difference(intent, offer).startswith("a bandwidth of")
    long = replace(idle, pinned={"downtime_limit_ms": 500})
    (offer,) = nearest(intent, long)
    assert 500 <= (offer.max_silence_ms or 0) <= 600


def test_what_steering_may_not_change_is_not_counted_on() -> None:
    """A limit of 300 ms would end it, and it is set to 20; so would a throttle that is off."""
    busy = basis(200, region_mib=20)
    assert judge(Intent(500, 60), busy).kept is True
    assert judge(Intent(500, 60), replace(busy, pinned={"downtime_limit_ms": 20})).kept is False
    slow = Intent(300, 60, 80, may=(Means.THROTTLE,))
    assert judge(slow, basis(150)).kept is True
    off = replace(basis(150), pinned={"auto_converge": False})
    assert judge(slow, off).kept is False
    own = replace(basis(150), pinned={"auto_converge": True})
    assert judge(slow, own).kept is None, "the user's throttle may withhold 99 %"
    mild = {"auto_converge": True, "max_cpu_throttle_percent": 80}
    assert judge(slow, replace(own, pinned=mild)).kept is True


def test_a_deadline_too_near_is_offered_a_later_one() -> None:
    (offer,) = (o for o in nearest(Intent(100, 5), basis(0)) if o.deadline_s != 5)
    assert offer.deadline_s is not None
    assert 10 < offer.deadline_s < 14


@settings(max_examples=40, deadline=None)
@given(
    st.floats(0, 400),
    st.floats(20, 400),
    st.integers(20, 2000),
    st.integers(3, 300),
    st.none() | st.integers(1, 90),
)
def test_each_offer_can_be_kept_and_differs_in_one_thing_and_the_deadline(
    dirty: float, path: float, silence: int, deadline: int, slowdown: int | None
) -> None:
    there = basis(dirty, path)
    may = HARMLESS if slowdown is None else (Means.THROTTLE, *HARMLESS)
    intent = Intent(silence, deadline, slowdown, may=may)
    if judge(intent, there).kept is False:
        for offer in nearest(intent, there):
            assert judge(offer, there).kept is True
            assert parse_intent(dump_intent(offer)) == offer
            changed = {goal for goal in Goal if offer.goal(goal) != intent.goal(goal)}
            more = offer.may != intent.may and Goal.SLOWDOWN not in changed
            besides = changed - {Goal.DEADLINE}
            assert len(besides) + more <= 1
            assert besides or more or changed


@settings(max_examples=40, deadline=None)
@given(st.floats(0, 400), st.integers(20, 2000), st.integers(3, 300), st.integers(1, 60))
def test_more_time_or_silence_never_makes_an_intent_impossible(
    dirty: float, silence: int, deadline: int, more: int
) -> None:
    there = basis(dirty)
    if judge(Intent(silence, deadline), there).kept is True:
        assert judge(Intent(silence, deadline + more), there).kept is True


@pytest.mark.parametrize("silence", [1, 10, 25, 26, 300, 2_000_000])
def test_the_downtime_limits_are_within_the_silence(silence: int) -> None:
    intent = Intent(silence)
    assert 1 <= first_limit_ms(intent) <= highest_limit_ms(intent) <= silence


def test_silence_that_is_not_stated_is_not_unlimited() -> None:
    assert highest_limit_ms(Intent(deadline_s=60)) == 300
