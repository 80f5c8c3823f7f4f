from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.forecast import needs as needs_module
from vmtune.forecast.course import AutoConverge, Conditions, Course, Moment, follow
from vmtune.forecast.dirty_curve import DirtyCurve, concave
from vmtune.forecast.needs import needs
from vmtune.model.host.dirty_rates import DirtyPoint

MB = 1e6
GIG = Conditions(throughput_bytes_per_s=100 * MB, downtime_limit_ms=300)


def writer(rate_mb_per_s: float, working_set_mb: float = 1e6) -> DirtyCurve:
    """A guest that goes over its working set at a steady rate."""
    full_ms = working_set_mb / rate_mb_per_s * 1000
    end = DirtyPoint(full_ms, working_set_mb * MB)
    return concave([end, DirtyPoint(full_ms * 2, working_set_mb * MB)])


def test_an_idle_guest_takes_one_pass() -> None:
    course = follow(DirtyCurve(()), Moment(1000 * MB), GIG)
    # 970 MB before the guest is stopped, 30 MB while it stands still.
    assert (course.ends, course.passes) == (True, 1)
    assert course.left_ms == pytest.approx(10_000)
    assert course.silence_ms == pytest.approx(300)
    assert course.sent_bytes == pytest.approx(1000 * MB)


def test_passes_shrink_by_the_ratio_of_dirtying_to_sending() -> None:
    course = follow(writer(50), Moment(1000 * MB), GIG)
    assert course.ends
    # 970 MB above the threshold, halved by each pass: 9.7 s, 4.85 s, ... together 19.4 s.
    assert course.left_ms == pytest.approx(19_400, rel=0.05)


def test_a_guest_that_dirties_more_than_is_sent_does_not_end() -> None:
    course = follow(writer(120), Moment(1000 * MB), GIG)
    assert not course.ends
    assert course.least_bytes is not None
    assert course.least_bytes > GIG.threshold_bytes


def test_a_small_working_set_ends_however_fast_it_is_written() -> None:
    assert follow(writer(500, working_set_mb=0.5), Moment(1000 * MB), GIG).ends


def test_pages_left_by_a_pass_are_sent_in_the_next_ones() -> None:
    """What remains is no more than what the guest works on, once all else was sent."""
    busy = writer(200, working_set_mb=25)
    course = follow(busy, Moment(1000 * MB), GIG)
    assert course.ends
    assert course.silence_ms <= 250 + 1
    assert not follow(busy, Moment(1000 * MB), replace(GIG, downtime_limit_ms=200)).ends


def test_auto_converge_ends_what_would_not() -> None:
    throttled = replace(GIG, auto_converge=AutoConverge())
    course = follow(writer(120), Moment(1000 * MB), throttled)
    assert course.ends
    assert 20 <= course.throttle_percent <= 99


def test_a_throttle_at_its_end_helps_no_further() -> None:
    weak = replace(GIG, auto_converge=AutoConverge(max_percent=20))
    assert not follow(writer(400), Moment(1000 * MB), weak).ends


def test_a_guest_with_cpu_to_spare_is_not_slowed_by_a_small_throttle() -> None:
    spare = replace(GIG, busy_share=0.6)
    assert [spare.does_share(percent) for percent in (0, 20, 40)] == [1.0, 1.0, 1.0]
    assert spare.does_share(70) == pytest.approx(0.5)
    throttled = replace(GIG, auto_converge=AutoConverge())
    busy, idling = (
        follow(writer(120), Moment(1000 * MB), replace(throttled, busy_share=share))
        for share in (1.0, 0.6)
    )
    assert idling.throttle_percent > busy.throttle_percent
    assert idling.left_ms > busy.left_ms


def test_what_is_sent_again_may_be_smaller_than_the_first_pass() -> None:
    plain, delta = (
        follow(writer(50), Moment(1000 * MB), replace(GIG, wire_share=0.5, first_wire_share=first))
        for first in (1.0, None)
    )
    assert plain.left_ms > 9700 > delta.left_ms
    assert plain.left_ms < follow(writer(50), Moment(1000 * MB), GIG).left_ms


DELTAS = replace(GIG, cache_bytes=200 * MB, delta_share=0.1)
"""XBZRLE."""


@pytest.mark.parametrize(("before_ms", "pass_ms", "cache_mb", "share"), [
    (0, 500, 200, 0),  # nothing was sent after the first pass
    (500, 500, 200, 0),  # a writer in order has not come round yet
    (750, 500, 200, 0.5),
    (1000, 500, 200, 1),
    (9000, 3000, 200, 1),
    (9000, 3000, 25, 0.5),  # the cache holds half of it
])  # fmt: skip
def test_xbzrle_saves_on_what_it_sent_before_and_still_has(
    before_ms: float, pass_ms: float, cache_mb: float, share: float
) -> None:
    curve = writer(50, working_set_mb=50)
    cached = replace(DELTAS, cache_bytes=cache_mb * MB).cached_share(curve, before_ms, pass_ms)
    assert cached == pytest.approx(share)
    assert GIG.cached_share(curve, before_ms, pass_ms) == 0


def test_xbzrle_saves_nothing_until_the_guest_writes_to_what_was_sent() -> None:
    """One that does not come round in the time is sent as if without."""
    far, near = (
        [
            follow(writer(50, working_set_mb=region), Moment(1000 * MB), each)
            for each in (GIG, DELTAS)
        ]
        for region in (5000, 100)
    )
    assert far[0].left_ms == pytest.approx(far[1].left_ms)
    assert far[0].sent_bytes == pytest.approx(far[1].sent_bytes)
    assert near[1].sent_bytes < near[0].sent_bytes
    assert near[1].left_ms < near[0].left_ms


def test_a_guest_whose_pages_are_cached_ends_though_it_dirties_more_than_is_sent() -> None:
    """The pass that fills the cache is as long as the one before: that is no standing still."""
    endless, ended = (
        follow(writer(120, working_set_mb=60), Moment(1000 * MB), each) for each in (GIG, DELTAS)
    )
    assert (endless.ends, ended.ends) == (False, True)


@given(
    st.floats(0, 500), st.floats(1, 4000), st.floats(1, 4000), st.floats(0.002, 1), st.booleans()
)  # fmt: skip
def test_xbzrle_never_sends_more(
    rate: float, region_mb: float, cache_mb: float, delta: float, limited: bool
) -> None:
    without = replace(GIG, limited=limited)
    sets = replace(without, cache_bytes=cache_mb * MB, delta_share=delta)
    curve = writer(max(0.1, rate), region_mb)
    plain, packed = (follow(curve, Moment(1000 * MB), each) for each in (without, sets))
    if plain.ends:
        assert packed.ends
    for before_ms in (0.0, 100.0, 5000.0):
        assert 0 <= sets.cached_share(curve, before_ms, 100.0) <= 1


def test_pages_that_cost_nothing_are_sent_at_once() -> None:
    course = follow(DirtyCurve(()), Moment(1000 * MB), replace(GIG, wire_share=0.01))
    assert course.left_ms == pytest.approx(100, abs=60)


def test_the_rest_goes_at_the_rate_of_the_switchover() -> None:
    quick = replace(GIG, switchover_bytes_per_s=3000 * MB, device_ms=20)
    course = follow(DirtyCurve(()), Moment(1000 * MB), quick)
    assert course.silence_ms == pytest.approx(30)


@given(
    st.floats(1, 2000),
    st.floats(0.1, 5000),
    st.floats(1, 5000),
    st.floats(1, 10_000),
    st.floats(1, 2000),
)
def test_what_helps_never_harms(
    rate: float, working_set: float, remaining: float, limit_ms: float, sends: float
) -> None:
    curve, moment = writer(rate, working_set), Moment(remaining * MB)
    conditions = Conditions(sends * MB, limit_ms)
    course = follow(curve, moment, conditions)
    assert course.left_ms >= 0
    assert course.passes >= 1
    if course.ends:
        longer = follow(curve, moment, replace(conditions, downtime_limit_ms=limit_ms * 2))
        assert longer.ends
        faster = follow(curve, moment, replace(conditions, throughput_bytes_per_s=sends * 2 * MB))
        assert faster.ends


@given(st.floats(110, 1000), st.floats(100, 5000))
def test_what_is_said_to_be_needed_lets_it_end(rate: float, working_set: float) -> None:
    curve, moment = writer(rate, working_set), Moment(1000 * MB)
    if follow(curve, moment, GIG).ends:
        return
    wanted = needs(curve, moment, GIG)
    assert wanted.downtime_limit_ms is not None
    assert wanted.throughput_bytes_per_s is not None
    assert wanted.throttle_percent is not None
    for changed, throttle in (
        (replace(GIG, downtime_limit_ms=wanted.downtime_limit_ms), 0.0),
        (replace(GIG, throughput_bytes_per_s=wanted.throughput_bytes_per_s), 0.0),
        (GIG, wanted.throttle_percent),
    ):
        assert follow(curve, replace(moment, throttle_percent=throttle), changed).ends


@pytest.mark.parametrize("rate", [110, 150, 300, 1000])
def test_what_is_said_to_be_needed_is_hardly_more_and_takes_few_courses(
    rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is computed at each synchronisation of each migration that does not end by itself."""
    curve, moment, followed = writer(rate, 400), Moment(1000 * MB), 0

    def counted(*what: Any) -> Course:
        nonlocal followed
        followed += 1
        return follow(*what)

    monkeypatch.setattr(needs_module, "follow", counted)
    wanted = needs(curve, moment, GIG)
    assert followed <= 40
    assert wanted.downtime_limit_ms is not None
    assert wanted.throughput_bytes_per_s is not None
    assert wanted.throttle_percent is not None
    share = 0.98 / 1.1
    for changed, throttle in (
        (replace(GIG, downtime_limit_ms=wanted.downtime_limit_ms * share), 0.0),
        (replace(GIG, throughput_bytes_per_s=wanted.throughput_bytes_per_s * share), 0.0),
        (GIG, wanted.throttle_percent * share),
    ):
        if throttle < 99 * share:  # the hardest has no margin
            assert not follow(curve, replace(moment, throttle_percent=throttle), changed).ends
