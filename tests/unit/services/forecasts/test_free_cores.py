"""How many cores are free, by what hosts say of their idle time."""

from __future__ import annotations

import pytest

from vmtune.services.forecasts.free_cores import Idle, fewest


@pytest.mark.parametrize(
    ("before", "now", "free"),
    [
        ((100.0, 50.0), (116.0, 54.0), 2.0),  # the destination has the fewest
        ((100.0, 50.0), (100.0, 54.0), 0.0),
        ((100.0, 50.0), (3.0, 54.0), 0.0),  # it was booted meanwhile
        ((100.0, 50.0), (116.0, None), None),
        ((), (), None),
    ],
)
def test_the_host_with_the_fewest_counts(
    before: tuple[float, ...], now: tuple[float | None, ...], free: float | None
) -> None:
    assert fewest(Idle(10.0, before), Idle(12.0, now)) == free
