"""The guest's passes on the host's clock."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.migration.guest_passes import overlap, stretches, union
from vmtune.bench.model.runs.run import GuestPass

MIB = 1 << 20


def guest_pass(number: int, at_ms: float, guest_ms: float, took_ms: float) -> GuestPass:
    return GuestPass(0, number, at_ms, round(guest_ms * 1000), round(took_ms * 1000), MIB)


def test_a_pass_is_timed_by_the_host_and_rests_by_the_guest() -> None:
    # Rests of 50 ms, passes of 100 ms; the guest stood still for 400 ms in the third.
    passes = [
        guest_pass(1, 100, 100, 100),
        guest_pass(2, 250, 250, 100),
        guest_pass(3, 800, 400, 100),
    ]
    first, second, third, unfinished = stretches(passes, 900)
    assert first.first
    assert (second.work_ms, second.rest_ms, second.working) == (100, 50, (150, 250))
    assert (third.work_ms, third.rest_ms) == (500, 50)
    assert not unfinished.ended
    assert unfinished.work_ms == 50


def test_lost_reports_are_shared_out() -> None:
    passes = [guest_pass(1, 100, 100, 100), guest_pass(4, 400, 400, 100)]
    _, several = stretches(passes, 400)
    assert (several.passes, several.work_ms, several.rest_ms) == (3, 100, 0)


def test_a_guest_clock_that_goes_back_loses_one_rest_and_no_pass() -> None:
    """After a migration the guest's counter may be another host's."""
    passes = [
        guest_pass(1, 100, 1100, 100),
        guest_pass(2, 250, 1250, 100),
        guest_pass(3, 400, 7, 100),
        guest_pass(4, 550, 157, 100),
    ]
    assert [s.work_ms for s in stretches(passes, 550)] == [100, 100, 100, 100]


def test_a_guest_that_began_anew_is_not_a_pass() -> None:
    passes = [guest_pass(5, 100, 100, 100), guest_pass(1, 300, 100, 100)]
    ended = [s for s in stretches(passes, 300) if s.ended]
    assert [s.until_ms for s in ended] == [100]


def test_what_cannot_be_is_left_out() -> None:
    assert stretches([GuestPass(0, 1, 10, 10, 10, 0)], 20) == []
    assert stretches([], 20) == []


@given(
    st.lists(
        st.builds(
            GuestPass,
            worker=st.integers(0, 2),
            number=st.integers(0, 9),
            at_ms=st.floats(0, 1000),
            guest_us=st.integers(0, 10**7),
            duration_us=st.integers(0, 10**7),
            written_bytes=st.integers(0, MIB),
        )
    ),
    st.floats(0, 1000),
)
def test_any_reports_give_stretches_that_can_be(passes: list[GuestPass], ended_ms: float) -> None:
    found = stretches(passes, ended_ms)
    for each in found:
        assert each.work_ms >= 0
        assert each.rest_ms >= 0
        assert each.since_ms <= each.until_ms
    # One worker does one thing at a time.
    for worker in {each.worker for each in found}:
        spans = sorted(
            (s.since_ms, s.until_ms) for s in found if s.worker == worker and not s.first
        )
        later = spans[1:]
        assert all(a[1] <= b[0] for a, b in zip(spans, later, strict=False) if a[0] >= 0)


SPANS = st.tuples(st.integers(0, 50), st.integers(0, 50)).map(lambda t: (min(t), max(t)))


@given(st.lists(SPANS))
def test_a_union_is_what_counting_finds(spans: list[tuple[float, float]]) -> None:
    counted = sum(any(a <= n and n + 1 <= b for a, b in spans) for n in range(50))
    assert union(spans) == counted


@given(SPANS, SPANS)
def test_an_overlap_is_what_two_have_together(
    one: tuple[float, float], other: tuple[float, float]
) -> None:
    both = (one[1] - one[0]) + (other[1] - other[0]) - union([one, other])
    assert overlap(one, other) == pytest.approx(both)


def test_short_passes_are_taken_together() -> None:
    passes = [guest_pass(n, 0.5 * n, 0.5 * n, 0.5) for n in range(1, 301)]
    # The reports of 60 ms come all at once, as those of a guest that is caught up with.
    passes = [guest_pass(p.number, 100, p.number / 2, 0.5) if 40 <= p.at_ms <= 100 else p
              for p in passes]  # fmt: skip
    found = [s for s in stretches(passes, 150) if s.ended and not s.first]
    assert sum(s.passes for s in found) == 299
    assert all(s.until_ms - s.since_ms >= 50 for s in found)
    assert [s.work_ms for s in found] == pytest.approx([0.5] * len(found))
