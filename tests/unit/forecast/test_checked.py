"""How good forecasts were."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from vmtune.forecast.checked import check, check_by, nearest_rank, path_of, week_of
from vmtune.forecast.held import Figures, Happened, HeldForecast
from vmtune.forecast.ranges import Range
from vmtune.model.migration.forecast_basis import Basis, Figure

MONDAY = datetime(2026, 11, 23, 0, 0, tzinfo=UTC)


def held(
    total_ms: float | None = 10_000.0,
    *,
    ends: bool | None = True,
    ended: bool | None = True,
    others: float | None = None,
    at: datetime = MONDAY,
    profile: str = "p",
    destination: str = "b",
) -> HeldForecast:
    figures = Figures(ends, Range(8_000, 10_000, 15_000) if ends else None)
    happened = Happened(ended, total_ms if ended else None, others_total_ms=others)
    return HeldForecast(UUID(int=1), "a", destination, profile, Basis.BEFORE, figures, happened, at)


def test_errors_are_shares_of_what_happened() -> None:
    found = check([held(8_000.0), held(12_500.0, others=25_000.0), held(20_000.0)])
    accuracy = found.figures[Figure.TOTAL]
    assert accuracy.count == 3
    assert accuracy.median_error == pytest.approx(0.25)  # 25 %, 20 %, 50 %
    assert accuracy.p90_error == pytest.approx(0.5)
    assert (accuracy.median_off, accuracy.p90_off) == (2_500, 10_000)
    assert accuracy.within == pytest.approx(2 / 3)
    assert (accuracy.others_count, accuracy.others_median_error) == (1, 1.0)
    assert set(found.figures) == {Figure.TOTAL}


def test_may_not_is_neither_right_nor_wrong_and_what_is_not_known_does_not_count() -> None:
    found = check([held(), held(ends=False), held(ends=None), held(ended=None), held(ended=False)])
    assert (found.forecasts, found.ends_known, found.may_not) == (5, 4, 1)
    assert found.ends_right == pytest.approx(1 / 3)


def test_of_none_nothing_is_told() -> None:
    found = check([])
    assert (found.forecasts, found.ends_right, found.figures) == (0, None, {})


def test_groups_by_week_and_hosts() -> None:
    sunday = MONDAY - timedelta(seconds=1)
    every = [held(at=MONDAY + timedelta(days=6)), held(at=sunday, destination=""), held()]
    weeks = check_by(every, week_of)
    assert [(key, each.forecasts) for key, each in weeks] == [("2026-11-16", 1), ("2026-11-23", 2)]
    assert [key for key, _ in check_by(every, path_of)] == ["a to an unknown host", "a to b"]


def test_nearest_rank() -> None:
    assert nearest_rank(range(1, 11), 0.9) == 9
    assert nearest_rank([3.0], 0.9) == 3.0
