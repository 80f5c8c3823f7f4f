"""When a host is looked at again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from vmtune.model.plan.drift import DriftScan, ScanResult

NOW = datetime(2026, 11, 21, 4, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ago_s", "due"),
    [(None, True), (0, False), (899, False), (900, True), (10**6, True),
     (-899, False), (-900, True)],
)  # fmt: skip
def test_a_host_is_due_an_interval_after_the_last_scan_and_where_the_clock_went_back(
    ago_s: int | None, due: bool
) -> None:
    ended = None if ago_s is None else NOW - timedelta(seconds=ago_s)
    scan = DriftScan("a", 3, 3, "", ended, ScanResult())
    assert scan.due(NOW, 900) is due
    assert not scan.due(NOW, 0), "it is switched off"


def test_one_that_is_asked_for_is_due_at_once() -> None:
    scan = DriftScan("a", 4, 3, "", NOW, ScanResult())
    assert scan.pending
    assert scan.due(NOW, 0)
