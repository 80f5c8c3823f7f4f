"""The sentence of a verdict never contradicts it, whatever the figures are."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vmtune.stats.model import Bound, Direction, Effect, Scale
from vmtune.stats.verdict import MarginPosition, extent, margin_words, position_of, verdict_of

NUMBER = re.compile(r"[0-9][0-9,]*(?:\.[0-9]+)?")
PERCENT = re.compile(r"([0-9][0-9,]*(?:\.[0-9]+)?) %")


def effects() -> st.SearchStrategy[Effect]:
    """Ratios, with ends near to and far from the margin's borders and from 1."""
    near = st.one_of(st.just(0.0), st.floats(-14, -0.5).map(lambda e: 10.0**e),
                     st.floats(-14, -0.5).map(lambda e: -(10.0**e)))  # fmt: skip

    @st.composite
    def drawn(draw: st.DrawFn) -> Effect:
        margin = draw(st.sampled_from([0.0, 0.01, 0.05, 0.2, 0.5]) | st.floats(0.0, 0.99))
        borders = st.sampled_from([1.0, 1 + margin, 1 / (1 + margin)])
        end = st.one_of(
            st.builds(lambda border, off: border * (1 + off), borders, near),
            st.floats(-15, 15).map(lambda e: 10.0**e),
        )
        low, high = sorted((draw(end), draw(end)))
        missing = draw(st.sampled_from(["", "", "", "low", "high"]))
        return Effect(
            Scale.RATIO,
            low,
            Bound.EXACT,
            None if missing == "low" else low,
            None if missing == "high" else high,
            0.95,
            1 / (1 + margin),
            1 + margin,
        )

    return drawn()


@given(effects())
@example(Effect(Scale.RATIO, 0.82, Bound.EXACT, 0.82, 0.8333, 0.95, 1 / 1.2, 1.2))
def test_what_is_beyond_the_margin_reads_so(effect: Effect) -> None:
    position = position_of(effect)
    told, margin = extent(effect, ""), margin_words(effect, "")
    lower, higher = [number(text) for text in PERCENT.findall(margin)] if "(" in margin else (0, 0)
    ends = [number(text) for text in PERCENT.findall(told)]
    if position is MarginPosition.BELOW:
        assert told.endswith("lower")
        assert "higher" not in told
        assert min(ends) > lower, (told, margin)
    if position is MarginPosition.ABOVE:
        assert told.endswith("higher")
        assert "lower" not in told
        assert min(ends) > higher, (told, margin)
    if position is MarginPosition.WITHIN:
        for end, side in re.findall(r"([0-9.,]+) %(?: to [0-9.,]+ %)? (lower|higher)", told):
            assert number(end) <= (lower if side == "lower" else higher), (told, margin)


@given(effects())
def test_a_ratio_is_never_all_of_it_nor_nothing(effect: Effect) -> None:
    told = extent(effect, "")
    assert not re.search(r"(^|[^0-9,.])100 %( to [0-9.,]+ %)? lower", told) or "than" in told
    for end in (effect.low, effect.high):
        if end is not None and abs(end - 1) > 1e-9:
            assert not re.search(r"(^| )0 %", told)


@pytest.mark.parametrize("direction", [Direction.LOWER, Direction.HIGHER])
@given(effect=effects())
def test_the_side_that_is_told_is_the_side_of_the_verdict(
    direction: Direction, effect: Effect
) -> None:
    verdict = verdict_of(position_of(effect), direction)
    told = extent(effect, "")
    better_is = "lower" if direction is Direction.LOWER else "higher"
    if verdict == "better":
        assert told.endswith(better_is)
    if verdict == "worse":
        assert not told.endswith(better_is)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1.2, None, "at least 20 % higher"),
        (None, 0.9, "at least 10 % lower"),
        (0.95, None, "at most 5 % lower, or any amount higher"),
        (None, 1.05, "at most 5 % higher, or any amount lower"),
        (1.0, None, "no lower"),
        (None, 1.0, "no higher"),
    ],
)
def test_an_interval_with_one_end(low: float | None, high: float | None, words: str) -> None:
    assert extent(Effect(Scale.RATIO, 1.0, Bound.UNKNOWN, low, high, 0.95, 0.9, 1.1), "") == words


def number(text: str) -> float:
    return float(text.replace(",", ""))
