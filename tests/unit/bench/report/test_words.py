"""What a report writes of figures is true of them, for every metric."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.model.metrics.table import METRICS
from vmtune.bench.report.report import ReportMetric
from vmtune.bench.report.words import effect_text, interval_text, times_text, value_text
from vmtune.stats.model import Bound, Effect, Scale
from vmtune.units import LEAST_SHOWN, Unit

BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
ALL = [ReportMetric(m.name, m.title, m.unit, m.direction, "") for m in METRICS.values()]
BY_UNIT = list({metric.unit: metric for metric in ALL}.values())
MAGNITUDES = st.floats(-12, 12).map(lambda exponent: 10.0**exponent)
PARTS = re.compile(r"([+-]?[0-9][0-9,]*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)(?: (\S+))?")


def read(text: str, *, rate: bool = True) -> float:
    """The number that a text says, bytes in bytes.

    :param rate: of bytes; otherwise it was counted in MiB.
    """
    match = PARTS.fullmatch(text)
    assert match, text
    number, unit = match.groups()
    prefixed = (unit or "").removesuffix("/s")
    factor = 1 if unit == "MiB/s" and not rate else BINARY.get(prefixed, 1)
    return float(number.replace(",", "")) * factor


def effect(scale: Scale, low: float, high: float) -> Effect:
    return Effect(scale, low, Bound.EXACT, low, high, 0.95, 0.95, 1.05)


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.name)
@given(value=MAGNITUDES)
def test_a_value_is_what_is_read(metric: ReportMetric, value: float) -> None:
    text = value_text(value, metric)
    if value < LEAST_SHOWN:
        assert text.startswith("< 0.001"), "no exponents"
        return
    assert "e" not in text.partition(" ")[0]
    assert read(text, rate=metric.unit is not Unit.MIB_PER_S) == pytest.approx(value, rel=0.0051)


@given(value=MAGNITUDES)
def test_a_ratio_is_told_in_percent_and_from_ten_times_on_as_that(value: float) -> None:
    told = effect_text(effect(Scale.RATIO, value, value), ALL[0])
    if value < 0.0001:
        assert told == "below -99.99 %"
        return
    number = float(told.partition(" ")[0].replace(",", ""))
    ratio = number if told.endswith(" times") else 1 + number / 100
    assert told.endswith(" times") == (value >= 10)
    assert ratio == pytest.approx(value, rel=0.0051, abs=0.0051)
    assert number > -100
    assert told[0] == ("+" if value > 1 else "-") or value >= 10 or abs(value - 1) < 1e-6


@pytest.mark.parametrize(
    ("value", "told", "times"),
    [
        (0.004, "-99.6 %", "0.004 times"), (0.036, "-96 %", "0.036 times"),
        (0.952, "-4.8 %", "0.952 times"), (1.0, "0 %", "1 times"), (1.5, "+50 %", "1.5 times"),
        (12.3, "12.3 times", ""), (2500.0, "2,500 times", ""), (1e-9, "below -99.99 %",
        "< 0.001 times"),
    ],
)  # fmt: skip
def test_ratios_as_an_engineer_writes_them(value: float, told: str, times: str) -> None:
    found = effect(Scale.RATIO, value, value)
    assert effect_text(found, ALL[0]) == told
    assert times_text(found) == times


@pytest.mark.parametrize("metric", BY_UNIT, ids=lambda metric: metric.unit.value)
@given(value=MAGNITUDES, sign=st.sampled_from([1, -1]))
def test_a_difference_is_what_is_read(metric: ReportMetric, value: float, sign: int) -> None:
    told = effect_text(effect(Scale.DIFFERENCE, sign * value, sign * value), metric)
    if value < LEAST_SHOWN:
        assert told.split()[0] == "0"
        return
    rate = metric.unit is not Unit.MIB_PER_S
    assert read(told, rate=rate) == pytest.approx(sign * value, rel=0.0051)
    assert told.startswith("+" if sign > 0 else "-")


@given(count=st.integers(-2000, 2000))
def test_a_difference_of_shares_is_what_is_read(count: int) -> None:
    told = effect_text(effect(Scale.SHARE, count / 2000, count / 2000), ALL[0])
    number, _, points = told.partition(" ")
    assert points == "points"
    assert float(number) == pytest.approx(count / 20, abs=0.5)
    assert (float(number) == 0) == (count == 0)
    assert not number.startswith("-0") or float(number)


@given(
    middle=st.floats(-3, 3).map(lambda exponent: 10.0**exponent),
    wide=st.floats(-2, 2).map(lambda exponent: 10.0**exponent),
)
def test_the_ends_of_an_interval_are_told_apart(middle: float, wide: float) -> None:
    low, high = interval_text(effect(Scale.RATIO, middle, middle * (1 + wide)), ALL[0]).split(
        " to "
    )
    assert low != high


def test_small_figures_are_not_nothing() -> None:
    assert interval_text(effect(Scale.RATIO, 0.0003, 0.00034), ALL[0]) == "-99.970 to -99.966 %"
    assert interval_text(effect(Scale.RATIO, 0.9997, 1.0002), ALL[0]) == "-0.03 to +0.02 %"
    assert interval_text(effect(Scale.SHARE, -0.001, 0.002), ALL[0]) == "-0.1 to +0.2 points"
