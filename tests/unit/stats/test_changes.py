"""Change points: found where they are, and seldom where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.benchmarks.histories import NOISES, normal, quiet
from tests.support.benchmarks.histories import history as ar_history
from tests.support.benchmarks.stats_simulation import SHAPES
from vmtune.errors import InvalidInput
from vmtune.stats.changes import LEAST_POINTS, ChangeKind, changes, completion_changes, newest_sign
from vmtune.stats.early import FALSE_AT_MOST, Strength
from vmtune.stats.model import Criterion, Observation, Verdict

TIME = Criterion("total_time_ms", unit="ms")


def history(values: np.ndarray) -> list[Observation]:
    return [Observation(float(value)) for value in values]


@pytest.mark.parametrize("length", [20, 40, 100])
@pytest.mark.parametrize("shape", ["lognormal", "outliers", "rounds"])
def test_a_history_without_a_change_seldom_shows_one(shape: str, length: int) -> None:
    random = np.random.default_rng([length, *shape.encode()])
    histories = SHAPES[shape](random, (200, length))
    wrong = sum(bool(changes(history(values), TIME)) for values in histories)
    assert wrong / 200 <= 0.08


@pytest.mark.parametrize("again", [0.3, 0.5])
@pytest.mark.parametrize("noise", ["normal", "outliers", "bimodal"])
def test_runs_that_resemble_each_other_seldom_show_a_change(noise: str, again: float) -> None:
    random = np.random.default_rng([round(10 * again), *noise.encode()])
    series = [ar_history(random, NOISES[noise], 60, again=again) for _ in range(150)]
    # 5 % and three standard deviations of 150 histories
    assert sum(bool(changes(history(values), TIME)) for values in series) <= 0.1 * 150


def test_a_small_step_is_found_among_outliers() -> None:
    random = np.random.default_rng(6)
    series = [ar_history(random, NOISES["outliers"], 100, step=1.1, at=50) for _ in range(100)]
    assert sum(bool(changes(history(values), TIME)) for values in series) >= 75


def test_a_step_gives_a_sign_within_three_runs_and_is_confirmed_later() -> None:
    random = np.random.default_rng(8)
    signs = confirmed = 0
    for _ in range(100):
        values = ar_history(random, quiet, 60, step=1.2, at=50)
        first = history(values[:53])
        sign = newest_sign(first, changes(first, TIME))
        signs += (
            sign is not None
            and sign.strength is Strength.CLEAR
            and sign.at in (50, 51)
            and sign.after > 1.1 * sign.before
        )
        seen = changes(history(values), TIME)
        confirmed += any(abs(change.at - 50) <= 2 for change in seen)
    assert signs >= 85  # in some others the change is found already
    assert confirmed >= 85


def test_a_step_of_twice_the_spread_gives_at_least_a_faint_sign() -> None:
    random = np.random.default_rng(18)
    signs = []
    for _ in range(200):
        values = ar_history(random, normal, 53, step=1.2, at=50)
        looks = [newest_sign(history(values[:seen]), ()) for seen in (51, 52, 53)]
        signs.append({sign.strength for sign in looks if sign is not None})
    assert sum(bool(seen) for seen in signs) >= 0.87 * 200
    assert sum(Strength.CLEAR in seen for seen in signs) <= 0.7 * 200


def test_one_outlier_at_the_end_gives_no_clear_sign() -> None:
    values = SHAPES["steady"](np.random.default_rng(2), (40,))
    values[-1] *= 50
    sign = newest_sign(history(values), ())
    assert sign is None or sign.strength is Strength.FAINT


@pytest.mark.parametrize("noise", ["normal", "outliers", "bimodal"])
def test_what_is_steady_seldom_gives_a_sign(noise: str) -> None:
    random = np.random.default_rng([9, *noise.encode()])
    series = [ar_history(random, NOISES[noise], 60) for _ in range(300)]
    signs = [newest_sign(history(values), ()) for values in series]
    for strengths, most in (
        ((Strength.CLEAR,), FALSE_AT_MOST[Strength.CLEAR]),
        (tuple(Strength), FALSE_AT_MOST[Strength.FAINT]),
    ):
        shown = sum(sign is not None and sign.strength in strengths for sign in signs)
        assert shown <= (most + 0.02) * 300


def test_what_was_nearly_always_the_same_gives_a_sign_too() -> None:
    """Iterations of pre-copy, whole milliseconds of a few."""
    values = np.full(40, 3.0)
    values[[7, 21]] = 4
    values[-2:] = 5
    sign = newest_sign(history(values), ())
    assert sign is not None
    assert (sign.at, sign.strength, sign.before, sign.after) == (38, Strength.CLEAR, 3, 5)
    values[-1] = 2  # another side
    assert newest_sign(history(values), ()) is None
    values[-2:] = 3
    assert newest_sign(history(values), ()) is None


@pytest.mark.parametrize("share", [0.02, 0.1, 0.25])
def test_what_is_nearly_always_the_same_seldom_gives_a_sign(share: float) -> None:
    random = np.random.default_rng(round(100 * share))
    series = 3.0 + (random.random((400, 50)) < share)
    signs = [newest_sign(history(values), ()) for values in series]
    clear = sum(sign is not None and sign.strength is Strength.CLEAR for sign in signs)
    assert clear <= FALSE_AT_MOST[Strength.CLEAR] * 400
    assert sum(map(bool, signs)) <= FALSE_AT_MOST[Strength.FAINT] * 400


def test_a_slow_change_is_one_ramp() -> None:
    random = np.random.default_rng(10)
    way = np.clip((np.arange(100) - 30) / 40, 0, 1) * np.log(1.5)
    (ramp,) = changes(history(1000 * np.exp(0.05 * random.normal(size=100) + way)), TIME)
    assert ramp.kind is ChangeKind.RAMP
    assert 20 <= ramp.at <= 40
    assert 60 <= ramp.until <= 80
    assert ramp.comparison.effect is not None
    assert ramp.comparison.effect.estimate == pytest.approx(1.5, rel=0.1)


def test_two_steps_up_are_no_ramp() -> None:
    values = SHAPES["steady"](np.random.default_rng(11), (90,))
    values[30:] *= 1.3
    values[60:] *= 1.3
    assert [c.kind for c in changes(history(values), TIME)] == [ChangeKind.STEP] * 2


def test_a_change_of_spread_alone_is_told_as_such() -> None:
    values = np.exp(0.02 * np.random.default_rng(12).normal(size=80))
    values[40:] **= 5
    (change,) = changes(history(1000 * values), TIME)
    assert change.kind is ChangeKind.SPREAD
    assert abs(change.at - 40) <= 5
    assert change.spread == pytest.approx(5, rel=0.6)


def test_two_failures_side_by_side_are_no_change() -> None:
    succeeded = [True] * 100
    succeeded[50:52] = [False, False]
    assert completion_changes(succeeded) == ()


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
