"""The table of metrics: well-formed, in base units, and as the documentation has it."""

from __future__ import annotations

import re

import pytest

from vmtune.model.service_metrics import CLUSTER, EXPORTED, Across, Exported, Kind

ROWS = [pytest.param(row, id=row.name) for row in EXPORTED.values()]
UNITS = ("seconds", "bytes")
FOREIGN = {"vm", "uuid", "id", "path", "url"}
"""Labels that would grow without end."""


@pytest.mark.parametrize("row", ROWS)
def test_a_metric_is_named_as_prometheus_wants_it(row: Exported) -> None:
    assert re.fullmatch(r"vmtune_[a-z]+(_[a-z]+)*", row.name)
    stem = row.name.removesuffix("_total")
    assert (stem != row.name) == (row.kind is Kind.COUNTER)
    assert row.unit in ("", *UNITS)
    assert stem.endswith(f"_{row.unit}") if row.unit else not stem.endswith(UNITS)
    assert not re.search(r"_(ms|us|kib|mib|percent|minutes)(_|$)", row.name)
    assert row.help.endswith(".")


@pytest.mark.parametrize("row", ROWS)
def test_its_series_are_bounded(row: Exported) -> None:
    assert not FOREIGN & set(row.labels)
    assert all(known for known in row.labels.values())
    assert sorted(row.buckets) == list(row.buckets)
    assert bool(row.buckets) == (row.kind is Kind.HISTOGRAM)


@pytest.mark.parametrize("row", ROWS)
def test_its_name_says_how_services_add_up(row: Exported) -> None:
    assert (row.across is Across.MAX) == row.name.startswith(CLUSTER)
    assert row.across is Across.SUM or row.kind is Kind.GAUGE
