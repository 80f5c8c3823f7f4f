"""What QEMU counts of a post-copy, as different releases say it."""

from __future__ import annotations

import pytest

from vmtune.model.migration.postcopy_figures import PostcopyFigures, read_postcopy_figures


def test_nothing_where_qemu_does_not_count() -> None:
    assert read_postcopy_figures({"status": "completed"}) is None


def test_before_10_1_there_is_no_latency() -> None:
    reply = {"postcopy-blocktime": 12, "postcopy-vcpu-blocktime": [12, 40]}
    assert read_postcopy_figures(reply) == PostcopyFigures(12, (12, 40))


def test_since_10_1_there_is() -> None:
    reply = {
        "postcopy-blocktime": 0,
        "postcopy-vcpu-blocktime": [3],
        "postcopy-latency": 410_000,
        "postcopy-latency-dist": [0, 0, 7],
        "postcopy-vcpu-latency": [410_000],
        "postcopy-non-vcpu-latency": 5,
    }
    assert read_postcopy_figures(reply) == PostcopyFigures(0, (3,), 410_000, (0, 0, 7), (410_000,))


@pytest.mark.parametrize(
    ("counts", "share", "us"),
    [
        ((), 0.99, None),
        ((0, 0), 0.99, None),
        ((1,), 0.99, 2),
        ((99, 0, 1), 0.99, 2),
        ((98, 0, 2), 0.99, 8),
        ((0, 0, 5), 0.5, 8),
    ],
)
def test_the_share_of_pages_that_came_within_a_time(
    counts: tuple[int, ...], share: float, us: int | None
) -> None:
    assert PostcopyFigures(0, latency_counts=counts).latency_at_most_us(share) == us
