"""How fast a guest goes on, by its reports."""

import pytest

from tests.perf.forecasts.forecast_probe import passes_per_s
from vmtune.bench.migration.guest_listener import GuestReport
from vmtune.lab.guest_serial import GuestPass


def passed(at: float, number: int) -> GuestReport:
    return GuestReport(at, GuestPass(0, number, 0, 0, 1, 0))


def test_only_what_was_done_between_two_moments_counts() -> None:
    reports = [passed(at, 10 * at) for at in range(5)] + [
        passed(at, 20 * at - 40) for at in (5, 6, 7)
    ]
    assert passes_per_s(reports, 0, 4) == pytest.approx(10)
    assert passes_per_s(reports, 4.5, 7.5) == pytest.approx(20)


def test_too_few_reports_say_nothing() -> None:
    with pytest.raises(ValueError, match="too little"):
        passes_per_s([passed(1, 3)], 0, 2)
