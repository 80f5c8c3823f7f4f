"""Bounds of what a guest's memory holds, against memories that are wholly known."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.forecast.held_memory import held_range
from vmtune.model.host.page_contents import RUN_BYTES, RUNS, PageContents

PAGES, TRIES = 1024, 400


def sampled(runs: int, there: float, zeros: float, draw: random.Random) -> tuple[int, PageContents]:
    """What a sample tells of a guest of so many runs, of which a share is there, and of whose pages
    a share holds zeros."""
    looked_up = min(RUNS, runs)
    have = round(runs * there)
    seen = sum(number < have for number in draw.sample(range(runs), looked_up))
    blank = sum(draw.random() < zeros for _ in range(PAGES)) / PAGES
    held = round(runs * RUN_BYTES * seen / looked_up * (1 - blank))
    return held, PageContents(PAGES, blank, 1.0)


@pytest.mark.parametrize("runs", [256, RUNS, 4 * RUNS, 100 * RUNS])
@pytest.mark.parametrize(("there", "zeros"), [(0.5, 0.5), (0.9, 0.02), (0.05, 0.3), (1.0, 0.95)])
def test_they_hold_the_truth_of_nineteen_in_twenty(runs: int, there: float, zeros: float) -> None:
    draw = random.Random(20261126)
    truth = round(runs * there) * RUN_BYTES * (1 - zeros)
    held = [
        held_range(found, runs * RUN_BYTES, contents).holds(truth)
        for found, contents in (sampled(runs, there, zeros, draw) for _ in range(TRIES))
    ]
    assert sum(held) / TRIES > 0.92


def test_all_that_was_looked_at_leaves_little_doubt() -> None:
    small = held_range(256 << 20, 256 << 20, PageContents(PAGES, 0.0, 1.0))
    assert small.likely == small.high == 256 << 20
    assert small.low > 0.99 * small.likely
    nothing = held_range(0, 256 << 20, PageContents(PAGES, 1.0, 1.0))
    assert (nothing.low, nothing.likely) == (1, 1)
    assert nothing.high < 0.01 * (256 << 20)
    few = held_range(128 << 20, 256 << 20, PageContents(16, 0.5, 1.0))
    assert few.high - few.low > 0.4 * (256 << 20)


@given(st.integers(1, 1 << 20), st.integers(1, PAGES), st.data())
def test_they_are_in_order_and_within_the_memory(mib: int, pages: int, data: st.DataObject) -> None:
    blank = data.draw(st.integers(0, pages)) / pages
    there = data.draw(st.floats(0, 1))
    memory = mib << 20
    found = held_range(round(memory * there * (1 - blank)), memory, PageContents(pages, blank, 1.0))
    assert 1 <= found.low <= found.likely <= found.high <= memory
