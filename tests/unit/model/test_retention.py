"""What is old enough, and what is left of samples that are thinned."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples.samples import make_samples
from vmtune.model.migration.record import QemuStatus, Sample
from vmtune.model.retention import COUNTERS, GAUGES, MAX_BOUNDARIES, RetentionSettings, thin

NOW = datetime(2026, 11, 21, 4, 30, tzinfo=UTC)
DAY = timedelta(days=1)


@st.composite
def any_samples(draw: st.DrawFn) -> list[Sample]:
    """In the order of time, each figure on its own, some of one millisecond."""
    one = make_samples(1)[0]
    samples: list[Sample] = []
    at_ms = 0
    for _ in range(draw(st.integers(0, 60))):
        at_ms += draw(st.sampled_from([0, 1, 40, 100, 900, 5000]))
        gauges = {
            name: draw(st.integers(0, 5)) for name in GAUGES if name != "expected_downtime_ms"
        }
        samples.append(
            replace(
                one,
                at_ms=at_ms,
                boundary=draw(st.booleans()),
                status=draw(st.sampled_from([QemuStatus.ACTIVE, QemuStatus.POSTCOPY_ACTIVE])),
                expected_downtime_ms=draw(st.none() | st.integers(0, 5)),
                **gauges,
            )
        )
    return samples


def stretches(samples: list[Sample], seconds: int) -> dict[int, list[Sample]]:
    found: dict[int, list[Sample]] = {}
    for sample in samples:
        found.setdefault(sample.at_ms // (seconds * 1000), []).append(sample)
    return found


STRETCHES = st.sampled_from([1, 3, 10, 3600])


@given(any_samples(), STRETCHES)
def test_the_last_and_the_peaks_of_each_stretch_are_left_as_they_were(
    samples: list[Sample], seconds: int
) -> None:
    kept = list(thin(samples, seconds))
    rest = iter(samples)
    assert all(any(one is each for each in rest) for one in kept), "in their order, none made up"
    before, after = stretches(samples, seconds), stretches(kept, seconds)
    assert before.keys() == after.keys()
    for number, whole in before.items():
        assert after[number][-1] is whole[-1]
        for gauge in GAUGES:
            values = [v for one in whole if (v := getattr(one, gauge)) is not None]
            left = [v for one in after[number] if (v := getattr(one, gauge)) is not None]
            assert (max(left, default=None), min(left, default=None)) == (
                max(values, default=None), min(values, default=None))  # fmt: skip


@given(any_samples(), STRETCHES)
def test_thinning_again_changes_nothing(samples: list[Sample], seconds: int) -> None:
    once = list(thin(samples, seconds))
    assert list(thin(once, seconds)) == once


@given(any_samples(), STRETCHES)
def test_phases_and_iterations_can_still_be_told(samples: list[Sample], seconds: int) -> None:
    kept = list(thin(samples, seconds))

    def phases(of: list[Sample]) -> list[tuple[int, QemuStatus]]:
        begun: list[tuple[int, QemuStatus]] = []
        for one in of:
            if not begun or begun[-1][1] is not one.status:
                begun.append((one.at_ms, one.status))
        return begun

    assert phases(kept) == phases(samples)
    after = stretches(kept, seconds)
    for number, whole in stretches(samples, seconds).items():
        marks = [one for one in whole if one.boundary][:MAX_BOUNDARIES]
        assert [one for one in after[number] if one.boundary][: len(marks)] == marks


@given(any_samples(), STRETCHES)
def test_what_is_left_is_bounded(samples: list[Sample], seconds: int) -> None:
    """However many samples a stretch had: the last, two for each gauge, marks, new phases."""
    kept = list(thin(samples, seconds))
    for number, left in stretches(kept, seconds).items():
        whole = stretches(samples, seconds)[number]
        phases = 1 + sum(a.status is not b.status for a, b in pairwise(whole))
        assert len(left) <= 1 + 2 * len(GAUGES) + MAX_BOUNDARIES + phases


def test_a_long_migration_shrinks() -> None:
    samples = make_samples(3000)
    kept = list(thin(samples, 10))
    assert len(kept) < len(samples) / 4
    assert kept[-1] == samples[-1]
    assert [getattr(kept[-1], name) for name in COUNTERS] == [
        getattr(samples[-1], name) for name in COUNTERS
    ]


def test_nothing_is_thinned_to_nothing() -> None:
    assert list(thin([], 10)) == []


@pytest.mark.parametrize("days", [0, 1, 30, 36_500])
def test_what_is_kept_for_so_many_days_is_old_after_them(days: int) -> None:
    kept = (n * days for n in range(2, 8))
    until = RetentionSettings(days, 10, *kept).until(NOW)
    expected = (None,) * 7 if not days else tuple(NOW - n * days * DAY for n in range(1, 8))
    found = (until.thin, until.drop, until.audit, until.gone_vms, until.keys, until.deliveries,
             until.forecasts)  # fmt: skip
    assert found == expected


def test_no_number_of_days_is_too_many() -> None:
    assert RetentionSettings(10_000_000, 10, 0, 0, 0, 0, 0, 0).until(NOW).thin is None
