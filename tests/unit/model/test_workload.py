"""The guest's workload: what is refused, and what the guest is told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tests.support.examples.workloads import HOUR_MS, workloads
from vmtune.errors import InvalidInput
from vmtune.model.workload import GUEST_NAMES, Workload


def test_what_is_unset_is_not_on_the_command_line() -> None:
    assert Workload(region_bytes=1 << 20).command_line() == "region=1048576 stride=4096 idle_ms=0"


@given(workloads())
def test_every_setting_reaches_the_guest(workload: Workload) -> None:
    told = {name: int(text) for name, text in _pairs(workload.command_line())}
    assert Workload.from_guest({**dict.fromkeys(GUEST_NAMES, 0), **told}) == workload


def _pairs(command_line: str) -> list[list[str]]:
    return [pair.split("=") for pair in command_line.split()]


@pytest.mark.parametrize(
    ("values", "refused"),
    [
        ({"stride_bytes": 0}, {"stride_bytes"}),
        ({"stride_bytes": (1 << 30) + 1, "region_bytes": 2 << 30}, {"stride_bytes"}),
        ({"region_bytes": 4095}, {"region_bytes"}),
        ({"region_bytes": 1 << 38}, {"region_bytes"}),
        ({"dirty_mb_per_s": -1}, {"dirty_mb_per_s"}),
        ({"dirty_mb_per_s": 1_000_001}, {"dirty_mb_per_s"}),
        ({"zero_percent": -1}, {"zero_percent"}),
        ({"zero_percent": 101}, {"zero_percent"}),
        ({"random_percent": -1}, {"random_percent"}),
        ({"random_percent": 101}, {"random_percent"}),
        ({"zero_percent": 60, "random_percent": 41}, {"random_percent"}),
        ({"idle_ms": -1}, {"idle_ms"}),
        ({"idle_ms": HOUR_MS + 1}, {"idle_ms"}),
        ({"beat_ms": -1}, {"beat_ms"}),
        ({"beat_ms": HOUR_MS + 1}, {"beat_ms"}),
        ({"check": 2}, {"check"}),
        ({"skew_percent": 49}, {"skew_percent"}),
        ({"skew_percent": 100}, {"skew_percent"}),
        ({"skew_percent": 80, "stride_bytes": 8192}, {"skew_percent"}),
        ({"skew_percent": 80, "check": 1}, {"skew_percent"}),
        ({"check": 1, "stride_bytes": 12}, {"check"}),
        ({"check": 1, "region_bytes": 65537}, {"check"}),
        ({"check": 1, "random_percent": 1}, {"check"}),
        ({"cpu_ring": 1}, {"cpu_ring"}),
        ({"stride_bytes": 0, "idle_ms": -1, "beat_ms": -1}, {"stride_bytes", "idle_ms", "beat_ms"}),
    ],
)
def test_refused(values: dict[str, Any], refused: set[str]) -> None:
    with pytest.raises(InvalidInput) as error:
        Workload(**values)
    problems = error.value.problems
    assert {problem.field for problem in problems} == refused
    assert all(problem.message and problem.remedy for problem in problems)
    assert len(problems) == len(refused)


def test_shares_may_fill_the_region() -> None:
    assert Workload(zero_percent=60, random_percent=40).random_percent == 40
