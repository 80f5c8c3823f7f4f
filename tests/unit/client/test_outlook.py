"""What is expected of a migration, and what came of it, in the words of the command line."""

from __future__ import annotations

from typing import Any

import click
import pytest

from vmtune.client.commands.migration.migrate import downtime
from vmtune.client.views.outlook import expected
from vmtune.client.views.progress import describe

UNKNOWN = {
    "ends": None,
    "left_ms": None,
    "least_left_ms": None,
    "most_left_ms": None,
    "silence_ms": None,
    "pass_left_ms": None,
    "needs": None,
}
NEEDS = {"downtime_limit_ms": 1234, "throughput_bytes_per_s": 1_300_000_000, "throttle_percent": 60}


@pytest.mark.parametrize(
    ("outlook", "said"),
    [
        ({}, "end not known yet"),
        ({"pass_left_ms": 8400}, "first pass done in about 8.4 s, end not known yet"),
        (
            {"ends": True, "left_ms": 12_300, "least_left_ms": 9400, "most_left_ms": 31_000},
            "about 12 s left (9.4 s to 31 s)",
        ),
        ({"ends": True, "left_ms": 3, "least_left_ms": 1, "most_left_ms": 4}, "about 10 ms left"),
        (
            {"ends": True, "left_ms": 600_000, "least_left_ms": 600_000, "most_left_ms": 9e6},
            "about 10 min left (10 min to 2.5 h)",
        ),
        ({"ends": False}, "will not end by itself"),
        (
            {"ends": False, "needs": NEEDS},
            "will not end by itself: needs a downtime limit of 1.2 s or 1.21 GiB/s of throughput "
            "or a throttle of 60 % or post-copy",
        ),
        (
            {"ends": False, "needs": dict.fromkeys(NEEDS)},
            "will not end by itself: needs post-copy",
        ),
        (
            {"ends": False, "needs": NEEDS | {"throttle_percent": None, "postcopy": False}},
            "will not end by itself: needs a downtime limit of 1.2 s or 1.21 GiB/s of throughput",
        ),
        (
            {"ends": False, "needs": dict.fromkeys(NEEDS) | {"postcopy": False}},
            "will not end by itself",
        ),
    ],
)
def test_what_is_expected(outlook: dict[str, Any], said: str) -> None:
    data = {"status": "active", "iteration": 1, "outlook": UNKNOWN | outlook}
    assert expected(data) == said


@pytest.mark.parametrize(
    "data",
    [
        {"status": "active", "outlook": None},
        {"status": "active"},
        {"status": "device", "outlook": UNKNOWN},
    ],
)
def test_nothing_is_said_where_nothing_is_expected(data: dict[str, Any]) -> None:
    assert expected(data) == ""


def test_after_the_first_pass_it_is_not_spoken_of() -> None:
    data = {"status": "active", "iteration": 3, "outlook": UNKNOWN | {"pass_left_ms": 100}}
    assert expected(data) == "end not known yet"


def test_a_downtime_beyond_its_limit_is_told_beside_it() -> None:
    record = {"totals": {"downtime_ms": 694}, "downtime_limit_ms": 200, "downtime_exceeded": True}
    assert click.unstyle(downtime(record)) == "694 ms, limit 200 ms: exceeded"
    assert downtime(record | {"downtime_exceeded": False}) == "694 ms"


def test_what_has_completed_has_no_figures_of_nothing() -> None:
    done = {"status": "completed", "outlook": UNKNOWN, "remaining_bytes": 0, "dirty_bytes_per_s": 0}
    assert describe(done, 300) == "QEMU has completed, the record is being finished"
