"""What a report writes of figures is true of them, for every metric."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.bench.model.metrics.table import METRICS
from vmtune.bench.report.report import ReportMetric
from vmtune.bench.report.words import effect_text, interval_text, value_text
from vmtune.stats.model import Bound, Effect, Scale
from vmtune.units import Unit

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
    assert read(value_text(value, metric), rate=metric.unit is not Unit.MIB_PER_S) == pytest.approx(
        value, rel=0.0051
    )


@given(value=MAGNITUDES)
def test_a_ratio_is_what_is_read(value: float) -> None:
    told = effect_text(effect(Scale.RATIO, value, value), ALL[0])
    assert read(told) == pytest.approx(value, rel=0.0051 if value >= 0.1 else 0.051)
    assert (read(told) == 1) == (abs(value - 1) < 1e-9)


@pytest.mark.parametrize("metric", BY_UNIT, ids=lambda metric: metric.unit.value)
@given(value=MAGNITUDES, sign=st.sampled_from([1, -1]))
def test_a_difference_is_what_is_read(metric: ReportMetric, value: float, sign: int) -> None:
    told = effect_text(effect(Scale.DIFFERENCE, sign * value, sign * value), metric)
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


@given(middle=MAGNITUDES, wide=st.floats(-8, 2).map(lambda exponent: 10.0**exponent))
def test_the_ends_of_an_interval_are_told_apart(middle: float, wide: float) -> None:
    told = interval_text(effect(Scale.RATIO, middle, middle * (1 + wide)), ALL[0])
    low, high = (read(part) for part in told.split(" to "))
    assert low < high
    for end in (low, high):
        assert end > 0


def test_small_figures_are_not_nothing() -> None:
    assert interval_text(effect(Scale.RATIO, 0.0003, 0.00034), ALL[0]) == "0.0003 to 0.00034"
    assert interval_text(effect(Scale.RATIO, 0.9997, 1.0002), ALL[0]) == "0.9997 to 1.0002"
    assert interval_text(effect(Scale.SHARE, -0.001, 0.002), ALL[0]) == "-0.1 to +0.2 points"
