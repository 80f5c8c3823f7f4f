"""Which downtime limits keep a silence, by what guests stood still beyond theirs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vmtune.intent.bounds import expect_beyond, first_limit_ms, highest_limit_ms
from vmtune.model.migration.downtime import DowntimeKept
from vmtune.model.migration.intent import Intent
from vmtune.model.migration.stated_intent import Beyond

MIB = 1 << 20
PATH = 32 * MIB


def stood(*beyond: int, limit_ms: int = 300) -> list[DowntimeKept]:
    return [DowntimeKept(limit_ms + each, limit_ms) for each in beyond]


def test_nothing_is_known_of_a_path_without_migrations_and_throughput() -> None:
    assert expect_beyond([], None) is None
    assert highest_limit_ms(Intent(500)) == 380


def test_a_full_socket_counts_until_enough_migrations_tell() -> None:
    """4 MiB take 125 ms at 32 MiB/s."""
    assert expect_beyond([], PATH) == Beyond(165, 0)
    assert expect_beyond(stood(10, 10), PATH) == Beyond(165, 2)
    assert expect_beyond(stood(10, 10, 10), PATH) == Beyond(31, 3)
    assert expect_beyond(stood(400), PATH) == Beyond(460, 1)


def test_a_guest_that_had_little_left_does_not_tell() -> None:
    assert expect_beyond(stood(-200, -200, -200), PATH) == Beyond(165, 0)


def test_a_fast_path_leaves_more_to_the_limit_than_a_slow_one() -> None:
    slow, fast = (expect_beyond([], path) for path in (PATH, 1000 * MIB))
    assert highest_limit_ms(Intent(500), slow) < highest_limit_ms(Intent(500), fast)


def test_what_is_only_assumed_leaves_most_of_the_silence() -> None:
    assert highest_limit_ms(Intent(100), expect_beyond([], MIB)) > 50


beyonds = st.none() | st.builds(Beyond, st.integers(0, 5000), st.integers(0, 10))


@given(st.integers(1, 60_000), beyonds)
def test_the_limit_and_what_comes_on_top_are_within_the_silence(
    silence: int, beyond: Beyond | None
) -> None:
    first, highest = (f(Intent(silence), beyond) for f in (first_limit_ms, highest_limit_ms))
    assert 1 <= first <= highest <= silence
    if beyond is not None and beyond.measured and beyond.ms < silence:
        assert highest + beyond.ms <= max(silence, beyond.ms + 1)


@given(
    st.lists(st.integers(0, 2000), min_size=3, max_size=10),
    st.integers(50, 2000),
    st.integers(1, 4000),
)
def test_a_silence_that_is_repeated_is_kept(beyond: list[int], limit_ms: int, silence: int) -> None:
    """What the guests stood still beyond their limits comes again, at the longest."""
    found = expect_beyond(stood(*beyond, limit_ms=limit_ms), PATH)
    assert found is not None
    if found.ms < silence:
        assert highest_limit_ms(Intent(silence), found) + max(beyond) <= silence


@given(st.lists(st.integers(0, 2000), min_size=3, max_size=9), st.integers(0, 2000))
def test_one_that_stood_still_longer_never_raises_the_limit(beyond: list[int], more: int) -> None:
    one, other = (expect_beyond(stood(*some), PATH) for some in (beyond, [more, *beyond]))
    assert highest_limit_ms(Intent(5000), other) <= highest_limit_ms(Intent(5000), one)
