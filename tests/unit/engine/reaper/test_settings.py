"""The reaper's settings, and what a round is taken to mean."""

from __future__ import annotations

from typing import Any

import pytest

from vmtune.engine.reaper.settings import ReaperSettings, Round, fill_ratios
from vmtune.errors import InvalidInput
from vmtune.model.host.dirty_rates import usable_entries
from vmtune.model.tunables.rows.reaper import ReaperPolicy


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"min_interval_ms": 49}, "min_interval_ms"),
        ({"min_interval_ms": True}, "min_interval_ms"),
        ({"max_interval_ms": 60_001}, "max_interval_ms"),
        ({"max_interval_ms": 99.5}, "max_interval_ms"),
        ({"target_fill_percent": 9}, "target_fill_percent"),
        ({"target_fill_percent": 91}, "target_fill_percent"),
        ({"policy": "fast"}, "policy"),
        ({"min_interval_ms": 500, "max_interval_ms": 400}, "min_interval_ms"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        ReaperSettings(**given)
    (problem,) = caught.value.problems
    assert problem.field == field
    assert problem.remedy


def test_every_fault_is_told_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        ReaperSettings(min_interval_ms=1, max_interval_ms=0, target_fill_percent=100)
    assert [p.field for p in caught.value.problems] == [
        "min_interval_ms",
        "max_interval_ms",
        "target_fill_percent",
    ]


def test_the_extremes_are_allowed() -> None:
    ReaperSettings(ReaperPolicy.AIMD, 50, 60_000, 90)
    ReaperSettings(ReaperPolicy.LEVELS, 50, 50, 10)


def test_a_fill_ratio_is_pages_by_entries() -> None:
    # 256 MiB/s for 100 ms are 6553.6 pages.
    assert fill_ratios([256, 0], 100, 65536) == pytest.approx((0.1, 0.0))
    assert fill_ratios([], 100, 4096) == ()


def test_the_kernel_keeps_entries_in_reserve() -> None:
    assert usable_entries(1024) == 448
    assert usable_entries(65536) == 64960


@pytest.mark.parametrize(
    ("entries", "fill", "filled"),
    [(65536, 0.99, True), (65536, 0.85, False), (1024, 0.43, True), (1024, 0.35, False)],
)
def test_a_ring_counts_as_full_by_what_can_be_used_of_it(
    entries: int, fill: float, filled: bool
) -> None:
    assert Round(100, 2, (0.0, fill), entries).filled is filled


def test_a_round_without_vcpus_is_empty() -> None:
    assert Round(100, 2, (), 4096).fullest == 0
    assert not Round(100, 2, (), 4096).filled


@pytest.mark.parametrize("given", [(0, 0, 4096), (10, -1, 4096), (10, 0, 0)])
def test_impossible_rounds_are_refused(given: tuple[float, float, int]) -> None:
    elapsed_ms, cost_ms, entries = given
    with pytest.raises(ValueError, match="no such round"):
        Round(elapsed_ms, cost_ms, (0.5,), entries)
