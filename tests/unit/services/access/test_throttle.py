"""Who fails is slowed down, in bounded memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.errors import TooManyAttempts
from vmtune.services.access import throttle as access_throttle
from vmtune.services.access.throttle import Throttle, key_of


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def waits(throttle: Throttle, key: str) -> int:
    """The wait that an attempt is answered with; 0 where it is looked at."""
    try:
        throttle.attempt(key)
    except TooManyAttempts as error:
        return error.wait_s
    return 0


def test_some_are_free_then_each_doubles_the_wait() -> None:
    clock = Clock()
    throttle = Throttle(3, 60, clock)
    assert [waits(throttle, "a") for _ in range(4)] == [0, 0, 0, 1]
    seen = []
    for _ in range(9):
        wait = waits(throttle, "a")
        seen.append(wait)
        clock.now += wait
        assert waits(throttle, "a") == 0
    assert seen == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert waits(throttle, "b") == 0


def test_an_attempt_that_comes_too_early_does_not_lengthen_the_wait() -> None:
    clock = Clock()
    throttle = Throttle(1, 60, clock)
    assert waits(throttle, "a") == 0
    for _ in range(50):
        assert waits(throttle, "a") == 1
    clock.now += 1
    assert waits(throttle, "a") == 0


def test_success_and_time_start_afresh() -> None:
    clock = Clock()
    throttle = Throttle(2, 60, clock)
    for start_afresh in (lambda: throttle.succeeded("a"), lambda: setattr(clock, "now", 9e9)):
        assert [waits(throttle, "a") for _ in range(3)] == [0, 0, 1]
        start_afresh()
    assert waits(throttle, "a") == 0


def test_a_thousand_at_once_are_not_a_thousand_free_ones() -> None:
    throttle = Throttle(10, 60, Clock())
    assert [waits(throttle, "a") for _ in range(1000)].count(0) == 10


@given(st.lists(st.integers(0, 30), max_size=200))
def test_memory_is_bounded(keys: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(access_throttle, "_MOST", 5)
        throttle = Throttle(1, 60, Clock())
        for key in keys:
            waits(throttle, str(key))
            assert len(throttle) <= 6


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("process 7 of user 0", "process 7 of user 0"),
    ],
)
def test_an_ipv6_customers_network_is_one_place(address: str, key: str) -> None:
    assert key_of(address) == key
