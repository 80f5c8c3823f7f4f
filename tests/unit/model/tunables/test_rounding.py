"""What is written in bits is read as the nearest value that libvirt takes."""

from __future__ import annotations

import pytest

from vmtune.model.tunables.built_in import BUILT_IN
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
