"""What QEMU says of dirty rates, read into fields."""

from __future__ import annotations

from typing import Any

import pytest

from vmtune.model.host.dirty_rates import DirtyRates, read_query_dirty_rate


@pytest.mark.parametrize(
    ("reply", "rates"),
    [
        ({}, DirtyRates(measured=False)),
        ({"status": "unstarted", "calc-time": 0}, DirtyRates(measured=False)),
        ({"status": "measuring", "calc-time": 50}, DirtyRates(measured=False, measuring=True)),
        (
            {"status": "measured", "calc-time": 102, "mode": "page-sampling", "dirty-rate": 7},
            DirtyRates(measured=True, measured_ms=102),
        ),
    ],
)
def test_only_a_measurement_that_has_ended_has_rates(
    reply: dict[str, Any], rates: DirtyRates
) -> None:
    assert read_query_dirty_rate(reply) == rates


def test_rates_come_in_the_order_of_the_vcpus() -> None:
    rows = [{"id": 10, "dirty-rate": 3}, {"id": 0, "dirty-rate": 1}, {"id": 2, "dirty-rate": 2}]
    reply = {"status": "measured", "calc-time": 51, "vcpu-dirty-rate": rows}
    assert read_query_dirty_rate(reply) == DirtyRates(True, False, 51, (1, 2, 3))
