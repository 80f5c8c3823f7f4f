"""What goes out under a bandwidth limit: 10 MB in each tenth of a second, at ten times the pace."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.forecast.bursts import LIMIT_HELD_MS, Bursts
from vmtune.forecast.course import AutoConverge, Conditions, Moment, follow
from vmtune.forecast.dirty_curve import DirtyCurve, concave
from vmtune.model.host.dirty_rates import DirtyPoint

MB = 1e6
LIMITED = Conditions(
    throughput_bytes_per_s=100 * MB,
    downtime_limit_ms=30,
    switchover_bytes_per_s=1000 * MB,
    limited=True,
)


def writer(rate_mb_per_s: float) -> DirtyCurve:
    return concave([DirtyPoint(1000, rate_mb_per_s * MB), DirtyPoint(9000, rate_mb_per_s * 9 * MB)])


def bursts() -> Bursts:
    return Bursts(100 * MB, 1000 * MB)


def test_what_fits_into_a_burst_goes_at_the_pace_of_the_path() -> None:
    sending = bursts()
    took_ms, left = sending.send(5 * MB, 1.0, 3 * MB)
    assert took_ms == pytest.approx(5 + 2)  # not 50
    assert left == 0
    assert sending.used_bytes == pytest.approx(5 * MB)


def test_what_does_not_fit_waits_for_the_next_tenth_of_a_second() -> None:
    sending = bursts()
    sending.send(5 * MB, 1.0, 3 * MB)
    took_ms, left = sending.send(9 * MB, 1.0, 3 * MB)
    # 5 MB of it at once, the other 4 at the beginning of the next burst, 7 ms having passed.
    assert took_ms == pytest.approx(100 - 7 + 4 + 2)
    assert left == 0


def test_it_is_synchronised_once_little_enough_remains_at_the_beginning_of_a_burst() -> None:
    took_ms, left = bursts().send(42 * MB, 1.0, 3 * MB)
    assert took_ms == pytest.approx(400 + 2)
    assert left == pytest.approx(2 * MB)
    assert bursts().send(2 * MB, 1.0, 3 * MB) == (2.0, 2 * MB)


def test_where_a_burst_has_been_sent_the_rest_waits_for_the_next_one() -> None:
    sending = bursts()
    sending.is_sent(75)
    took_ms, left = sending.send(5 * MB, 1.0, 3 * MB)
    assert took_ms == pytest.approx(25 + 5 + 2)  # not 5 + 2
    assert left == 0


@pytest.mark.parametrize(("burst_sent_ms", "left_ms"), [(None, 400 + 2), (75, 25 + 400 + 2)])
def test_a_running_migration_may_have_sent_its_burst(
    burst_sent_ms: float | None, left_ms: float
) -> None:
    moment = Moment(42 * MB, burst_sent_ms=burst_sent_ms)
    course = follow(writer(0), moment, replace(LIMITED, downtime_limit_ms=20))
    assert course.left_ms - course.silence_ms == pytest.approx(left_ms)


@pytest.mark.parametrize(("burst_mb_per_s", "in_ms"), [(None, 9), (300, 30)])
def test_a_burst_may_be_slower_than_the_switchover(
    burst_mb_per_s: float | None, in_ms: float
) -> None:
    burst = None if burst_mb_per_s is None else burst_mb_per_s * MB
    sending = replace(LIMITED, burst_bytes_per_s=burst).bursts()
    assert sending is not None
    assert sending.send(9 * MB, 1.0, 3 * MB)[0] == pytest.approx(in_ms + 2)


@given(st.floats(1, 2000), st.floats(0.01, 1), st.floats(0.01, 300), st.integers(1, 30))
def test_a_long_time_is_sent_at_the_limit_and_never_more_in_one_burst(
    remaining_mb: float, wire_share: float, threshold_mb: float, passes: int
) -> None:
    sending, took_ms, sent = bursts(), 0.0, 0.0
    for _ in range(passes):
        in_ms, left = sending.send(remaining_mb * MB, wire_share, threshold_mb * MB)
        assert 0 <= left <= remaining_mb * MB
        assert in_ms > 0
        took_ms += in_ms
        sent += (remaining_mb * MB - left) * wire_share
        assert 0 <= sending.used_bytes <= 10 * MB * (1 + 1e-9)
        assert 0 <= sending.at_ms < LIMIT_HELD_MS
    assert sent <= 10 * MB * (took_ms / LIMIT_HELD_MS + 1) * (1 + 1e-9)


def test_a_guest_ends_that_dirties_less_in_a_tenth_of_a_second_than_a_burst_sends() -> None:
    """However low its downtime limit: 75 MB/s is 7.5 MB in that time, of 10; 3 may remain."""
    course = follow(writer(75), Moment(500 * MB), LIMITED)
    assert course.ends
    assert course.left_ms == pytest.approx(500 / 25 * 1000, rel=0.1)
    # What was dirtied in the moment that the last burst took, not in a tenth of a second.
    assert course.silence_ms < 3
    assert not follow(writer(75), Moment(500 * MB), replace(LIMITED, limited=False)).ends


def test_a_guest_that_dirties_more_than_the_limit_lets_through_does_not_end() -> None:
    course = follow(writer(110), Moment(500 * MB), LIMITED)
    assert not course.ends
    assert course.passes < 100
    assert course.least_bytes is not None
    assert course.least_bytes > LIMITED.threshold_bytes


def test_what_was_never_used_is_passed_over_after_what_is_sent() -> None:
    beginning = Moment(1000 * MB, used_share=0.2, passed_over_bytes_per_s=1e9)
    course = follow(DirtyCurve(()), beginning, LIMITED)
    assert course.left_ms == pytest.approx(2000 + 800, rel=0.05)


def test_what_remains_when_it_stops_is_memory_that_was_never_used() -> None:
    """Which a high downtime limit does not make the guest wait for."""
    beginning = Moment(1000 * MB, used_share=0.2, passed_over_bytes_per_s=1e9)
    course = follow(DirtyCurve(()), beginning, replace(LIMITED, downtime_limit_ms=500))
    assert course.sent_bytes == pytest.approx(200 * MB)
    # All that was used, in 19 whole waits and a burst, and 750 of 800 MB passed over.
    assert course.left_ms == pytest.approx(1900 + 10 + 800, abs=5)
    assert course.silence_ms == pytest.approx(50)


def test_passing_over_takes_of_the_time_in_which_it_would_wait() -> None:
    """As much again may be sent when the tenth of a second is over."""
    sending = bursts()
    sending.send(5 * MB, 1.0, 0)
    sending.wait(40)
    took_ms, _ = sending.send(9 * MB, 1.0, 0)
    assert took_ms == pytest.approx(100 - 47 + 4 + 2)


def test_auto_converge_ends_under_a_limit_what_would_not() -> None:
    throttled = replace(LIMITED, auto_converge=AutoConverge())
    course = follow(writer(130), Moment(500 * MB), throttled)
    assert course.ends
    assert 30 <= course.throttle_percent <= 70  # at 30 % it dirties 91 MB/s
