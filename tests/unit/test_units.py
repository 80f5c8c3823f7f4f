"""Units: what people write becomes exact integers, and is shown back exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.units import Unit, UnitError, approximate, distinct_number, parse, render, share_text


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("64Mi", Unit.BYTES, 64 << 20),
        ("64 MiB", Unit.BYTES, 64 << 20),
        ("64M", Unit.BYTES, 64_000_000),
        ("1.5Gi", Unit.BYTES, 3 << 29),
        ("4096", Unit.BYTES, 4096),
        ("10Gbit/s", Unit.BYTES_PER_S, 1_250_000_000),
        ("100MiB/s", Unit.BYTES_PER_S, 100 << 20),
        ("1Gi", Unit.BYTES_PER_S, 1 << 30),
        ("20", Unit.MIB_PER_S, 20),
        ("20MiB/s", Unit.MIB_PER_S, 20),
        ("1GiB/s", Unit.MIB_PER_S, 1024),
        ("1.5s", Unit.MS, 1500),
        ("1.5s/GiB", Unit.MS_PER_GIB, 1500),
        ("12us/IO", Unit.US_PER_IO, 12),
        ("300ms", Unit.MS, 300),
        ("32us", Unit.NS, 32_000),
        ("50ms", Unit.US, 50_000),
        ("500", Unit.US, 500),
        ("2min", Unit.S, 120),
        ("1500ms", Unit.MS, 1500),
        ("30%", Unit.PERCENT, 30),
        ("4Ki", Unit.ENTRIES, 4096),
        (7, Unit.NONE, 7),
    ],
)
def test_people_write_units_as_they_like(text: str | int, unit: Unit, value: int) -> None:
    assert parse(text, unit) == value


@pytest.mark.parametrize(
    ("text", "unit", "reason"),
    [
        ("64ms", Unit.BYTES, "does not belong"),
        ("64Mi", Unit.MS, "does not belong"),
        ("1.5", Unit.BYTES, "whole number"),
        ("1mb", Unit.BYTES, "does not belong"),
        ("lots", Unit.BYTES, "not a number"),
        ("", Unit.MS, "not a number"),
        ("1e3", Unit.MS, "not a number"),
        ("9" * 50, Unit.BYTES, "not a number"),
        ("٣", Unit.COUNT, "not a number"),
    ],
)
def test_a_wrong_unit_says_what_would_be_right(text: str, unit: Unit, reason: str) -> None:
    with pytest.raises(UnitError, match=reason):
        parse(text, unit)


def test_a_truth_value_is_no_number() -> None:
    with pytest.raises(UnitError, match="not true or false"):
        parse(True, Unit.COUNT)


@given(st.integers(0, 1 << 62), st.sampled_from(list(Unit)))
def test_what_is_shown_is_read_back_as_the_same(value: int, unit: Unit) -> None:
    assert parse(render(value, unit).replace(",", ""), unit) == value


@given(st.text(max_size=60), st.sampled_from(list(Unit)))
def test_any_text_is_a_number_or_a_unit_error(text: str, unit: Unit) -> None:
    try:
        assert isinstance(parse(text, unit), int)
    except UnitError as error:
        assert len(str(error)) < 200


def test_rounding_is_for_tables() -> None:
    assert approximate(1_640_000_000, Unit.BYTES) == "1.53 GiB"
    assert approximate(1_070_000_000, Unit.BYTES) == "1,020 MiB"
    assert approximate(10, Unit.BYTES_PER_S) == "10 B/s"
    assert approximate(299.6, Unit.MS) == "300 ms"
    assert approximate(12.345, Unit.MS) == "12.3 ms"
    assert approximate(0.4, Unit.MS) == "0.4 ms"
    assert approximate(12.0, Unit.MIB_PER_S) == "12 MiB/s"
    assert approximate(1499.5, Unit.MS_PER_GIB) == "1,500 ms/GiB"
    assert approximate(12.345, Unit.US_PER_IO) == "12.3 us/IO"


@pytest.mark.parametrize(
    ("share", "text"),
    [(1.0, "100 %"), (0.9975, "> 99 %"), (0.97, "97 %"), (0.001, "< 1 %"), (0.0, "0 %")],
)
def test_all_and_none_are_told_only_where_it_is_so(share: float, text: str) -> None:
    assert share_text(share) == text


@given(st.floats(-12, -1).map(lambda exponent: 0.05 + 10.0**exponent))
def test_a_p_above_the_limit_does_not_read_like_the_limit(p: float) -> None:
    assert float(distinct_number(p, 0.05, 2)) > 0.05
    assert distinct_number(0.0312, 0.05, 2) == "0.031"
