"""Change points: found where they are, and seldom where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.stats_simulation import SHAPES
from vmtune.errors import InvalidInput
from vmtune.stats.changes import (
    FALSE_ALARMS,
    LEAST_POINTS,
    LEAST_SEGMENT,
    _partition,
    changes,
)
from vmtune.stats.model import Criterion, Observation, Verdict

TIME = Criterion("total_time_ms", unit="ms")


def history(values: np.ndarray) -> list[Observation]:
    return [Observation(float(value)) for value in values]


@pytest.mark.parametrize("length", [20, 40, 100])
@pytest.mark.parametrize("shape", ["lognormal", "outliers", "rounds"])
def test_a_history_without_a_change_seldom_shows_one(shape: str, length: int) -> None:
    random = np.random.default_rng([length, *shape.encode()])
    histories = SHAPES[shape](random, (500, length))
    wrong = sum(bool(changes(history(values), TIME)) for values in histories)
    assert wrong / 500 <= 2.5 * FALSE_ALARMS  # three standard deviations of 500 histories


@pytest.mark.parametrize("shape", ["lognormal", "outliers", "quantised"])
def test_a_change_is_found_where_it_is(shape: str) -> None:
    random = np.random.default_rng(3)
    found = 0
    for values in SHAPES[shape](random, (100, 60)):
        values[40:] *= 1.5
        seen = changes(history(values), TIME)
        found += len(seen) == 1 and abs(seen[0].at - 40) <= 2
    assert found >= 70


def test_what_came_after_is_held_against_what_was_before() -> None:
    values = SHAPES["steady"](np.random.default_rng(1), (60,))
    values[20:40] *= 1.3
    seen = changes(history(values), TIME)
    assert [change.at for change in seen] == [20, 40]
    up, down = (change.comparison for change in seen)
    assert (up.verdict, down.verdict) == (Verdict.WORSE, Verdict.BETTER)
    assert (up.a.runs, up.b.runs, down.a.runs) == (20, 20, 20)
    assert up.effect is not None
    assert up.effect.estimate == pytest.approx(1.3, rel=0.02)


def test_runs_without_a_value_do_not_count_and_keep_their_places() -> None:
    values = SHAPES["steady"](np.random.default_rng(1), (40,))
    values[20:] *= 1.3
    with_gaps = history(values)
    with_gaps[5:5] = [Observation(None, failure="QEMU died")] * 3
    assert [change.at for change in changes(with_gaps, TIME)] == [23]


def test_equal_values_have_no_change() -> None:
    assert changes(history(np.full(30, 7.0)), TIME) == ()


def test_a_single_outlier_is_no_change() -> None:
    values = SHAPES["steady"](np.random.default_rng(2), (30,))
    values[14] *= 50
    assert changes(history(values), TIME) == ()


@pytest.mark.parametrize(("length", "code"), [(LEAST_POINTS - 1, "too_few"), (2001, "too_many")])
def test_too_short_and_too_long_histories_are_refused(length: int, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        changes(history(np.arange(1.0, length + 1)), TIME)
    assert caught.value.problems[0].code == code


@pytest.mark.parametrize("shape", ["lognormal", "outliers", "quantised"])
def test_the_cuts_are_those_that_cost_least(shape: str) -> None:
    """As an implementation by others finds them, whose import takes seconds."""
    from ruptures import KernelCPD  # type: ignore[import-untyped]  # noqa: PLC0415 - see above

    random = np.random.default_rng([7, *shape.encode()])
    cut = 0
    for values in SHAPES[shape](random, (60, 120)):
        for place in random.integers(0, 120, 2):
            values[place:] *= random.uniform(0.7, 1.4)
        search = KernelCPD(kernel="linear", min_size=LEAST_SEGMENT).fit(values[:, None])
        price = 6 * float(values.var())
        found = _partition(values, price)
        assert found == search.predict(pen=price)[:-1]
        cut += bool(found)
    assert cut >= 10
