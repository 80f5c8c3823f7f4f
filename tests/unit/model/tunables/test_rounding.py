"""What is written in bits is read as the nearest value that libvirt takes."""

from __future__ import annotations

import pytest

from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.notes import whole_around
from vmtune.model.tunables.tunable import Kind
from vmtune.units import examples

BANDWIDTH = BUILT_IN["max_bandwidth_bytes_per_s"]
MIB = 1 << 20


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10Gbit/s", 1192 * MIB),
        ("1Gbit/s", 119 * MIB),
        ("1048577 B/s", MIB + 1),
        ("100MiB/s", 100 * MIB),
        ("1250000000", 1_250_000_000),
        (1_250_000_000, 1_250_000_000),
        ("0", 0),
    ],
)
def test_a_bandwidth_is_whole_mib(text: str | int, value: int) -> None:
    assert BANDWIDTH.accept(text) == value


def test_what_help_offers_needs_no_other_value() -> None:
    for text in examples(BANDWIDTH.unit).replace(" or ", ", ").split(", ")[1:]:
        value = BANDWIDTH.accept(text)
        assert isinstance(value, int)
        assert value % MIB == 0, text


def test_the_rounding_is_told() -> None:
    assert BANDWIDTH.rounding("10Gbit/s") == "10Gbit/s is rounded to 1,192 MiB/s"
    assert BANDWIDTH.rounding("1GiB/s") == ""
    assert BANDWIDTH.rounding("nonsense") == ""
    assert BUILT_IN["multifd"].rounding("on") == ""


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("max_bandwidth_bytes_per_s", "0 (no limit)"),
        ("copy_bandwidth_bytes_per_s", "0 (no limit)"),
        ("iothread_poll_grow", "0 (QEMU's choice)"),
        ("dirty_ring_size_entries", "0 (bitmap)"),
        ("downtime_limit_ms", "0 ms"),
    ],
)
def test_what_0_stands_for_is_said_and_taken(name: str, shown: str) -> None:
    row = BUILT_IN[name]
    assert row.render(0) == shown
    assert row.accept(shown) == 0
    if row.zero:
        assert row.accept(row.zero) == 0


def test_no_limit_is_not_proposed_where_a_little_is_wanted() -> None:
    row = BUILT_IN["max_bandwidth_bytes_per_s"]
    assert whole_around(row, 5) == (MIB,)
    assert whole_around(row, MIB + 5) == (MIB, 2 * MIB)
    assert whole_around(row, 0) is None


def test_only_numbers_have_words_for_0() -> None:
    assert {row.kind for row in BUILT_IN.values() if row.zero} == {Kind.INTEGER}
    assert BUILT_IN["copy_storage"].render(False) == "off"
