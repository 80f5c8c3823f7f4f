"""What is told of a running migration: nothing that QEMU has not measured yet is a figure."""

from __future__ import annotations

from dataclasses import replace

from tests.support.examples.samples import make_samples
from vmtune.services.migrations.records import progress_data

BEGINNING = replace(
    make_samples(1)[0], at_ms=80, iteration=1, dirty_pages_per_s=0, throughput_bytes_per_s=0,
    expected_downtime_ms=300,
)  # fmt: skip
MEASURED = ("dirty_bytes_per_s", "throughput_bytes_per_s", "expected_downtime_ms")


def measured(**changes: int) -> list[object]:
    told = progress_data(replace(BEGINNING, **changes), 0.1)
    return [told[name] for name in MEASURED]


def test_at_the_beginning_nothing_is_measured() -> None:
    assert measured() == [None, None, None], "QEMU says its limit for the downtime, and zeros"


def test_what_is_measured_is_told() -> None:
    assert measured(throughput_bytes_per_s=7) == [None, 7, None]
    assert measured(iteration=2, at_ms=1000) == [0, 0, 300]
    assert measured(dirty_pages_per_s=1) == [4096, None, 300]


def test_passes_of_the_first_second_measure_no_dirty_rate() -> None:
    assert measured(iteration=3, at_ms=999) == [None, 0, None]


def test_it_is_the_second_after_the_disks_in_which_no_dirty_rate_is_measured() -> None:
    sample = replace(BEGINNING, iteration=3, at_ms=60_000)
    assert progress_data(sample, 0.1, since_ms=999)["dirty_bytes_per_s"] is None
    assert progress_data(sample, 0.1, since_ms=1000)["dirty_bytes_per_s"] == 0


def test_where_nothing_is_sent_for_a_second_that_is_told() -> None:
    assert measured(at_ms=1000) == [None, 0, None]
