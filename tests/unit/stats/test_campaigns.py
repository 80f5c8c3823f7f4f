"""What a campaign needs: its schedule, what it can detect, and the host's noise floor."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from tests.support.benchmarks.stats_simulation import batch, positions_of
from vmtune.errors import InvalidInput
from vmtune.stats.compare import compare
from vmtune.stats.model import Criterion, Design, Observation, Sample, Scale
from vmtune.stats.noise import calibrate, floor_of
from vmtune.stats.planning import DEFAULT_NOISE, detectable, noise_of
from vmtune.stats.schedule import duration_s, schedule
from vmtune.stats.shift import Spans, shift
from vmtune.stats.verdict import MarginPosition

TIME = Criterion("total_time_ms", unit="ms")

# schedule --------------------------------------------------------------------------------


def test_the_order_is_the_same_for_ever() -> None:
    slots = schedule(["stock", "tuned", "zstd"], 4, seed=2026)
    assert [slot.arm for slot in slots] == [
        "zstd",
        *("stock", "zstd", "tuned"),
        *("tuned", "zstd", "stock"),
        *("zstd", "stock", "tuned"),
        *("zstd", "tuned", "stock"),
    ]
    assert slots == schedule(["zstd", "stock", "tuned"], 4, seed=2026)
    assert slots != schedule(["stock", "tuned", "zstd"], 4, seed=2027)


def test_each_block_has_every_arm_once_after_the_warm_up() -> None:
    slots = schedule("abc", 10, seed="campaign 7", warm_ups=4)
    assert [slot.number for slot in slots] == list(range(1, 35))
    assert [slot.warm_up for slot in slots] == [True] * 4 + [False] * 30
    assert {slot.arm for slot in slots[:3]} == {"a", "b", "c"}
    for block in range(1, 11):
        assert sorted(slot.arm for slot in slots if slot.block == block) == ["a", "b", "c"]


def test_every_order_is_equally_likely() -> None:
    seen = Counter(
        tuple(slot.arm for slot in schedule("abc", 1, seed, warm_ups=0)) for seed in range(6000)
    )
    assert seen.keys() == set(permutations("abc"))
    assert all(count == pytest.approx(1000, abs=110) for count in seen.values())


def test_one_arm_is_measured_alone() -> None:
    slots = schedule("a", 3, seed=1)
    assert [(slot.arm, slot.block) for slot in slots] == [
        ("a", None), ("a", 1), ("a", 2), ("a", 3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arms", "blocks", "warm_ups", "field"),
    [("", 6, 1, "arms"), ("aab", 6, 1, "arms"), ("ab", 0, 1, "blocks"), ("ab", 1001, 1, "blocks"),
     ("ab", 6, -1, "blocks")],
)  # fmt: skip
def test_a_schedule_that_is_none_is_refused(
    arms: str, blocks: int, warm_ups: int, field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        schedule(arms, blocks, 1, warm_ups)
    assert caught.value.problems[0].field == field


def test_how_long_it_takes() -> None:
    slots = schedule("ab", 10, seed=1, warm_ups=2)
    assert duration_s(slots, {"a": 10.0, "b": 30.0}) == 11 * 40.0


# planning --------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [6, 10, 20])
@pytest.mark.parametrize("design", list(Design))
def test_the_detectable_difference_is_found_as_often_as_it_says(size: int, design: Design) -> None:
    ratio = detectable(size, 0.15, design=design)
    assert ratio is not None
    experiments = batch("lognormal", size, paired=design is Design.PAIRED, ratio=ratio)
    found = (positions_of(experiments.shift(), 0.05) == MarginPosition.ABOVE).mean()
    assert found == pytest.approx(0.8, abs=0.04)


def test_more_blocks_and_less_noise_find_smaller_differences() -> None:
    by_blocks = [detectable(blocks) or 0 for blocks in (6, 10, 20, 30, 31, 100)]
    assert by_blocks == sorted(by_blocks, reverse=True)
    by_noise = [detectable(10, noise) or 0 for noise in (0, 0.05, 0.1, 0.3)]
    assert by_noise == sorted(by_noise)
    assert by_noise[0] == pytest.approx(1.05)


def test_too_few_blocks_detect_nothing() -> None:
    assert detectable(5) is None
    assert detectable(5, design=Design.UNPAIRED) is None
    assert detectable(6, design=Design.UNPAIRED) is not None
    with pytest.raises(InvalidInput, match="not a valid noise"):
        detectable(10, noise=-1)


def test_the_noise_of_earlier_runs() -> None:
    values = 1000 * np.exp(0.2 * np.random.default_rng(1).normal(size=400))
    assert noise_of(values.tolist()) == pytest.approx(0.2, rel=0.1)
    assert noise_of([1.0, 2.0]) is None
    assert noise_of([0.0, 1.0, 2.0]) is None
    assert 0 < DEFAULT_NOISE < 1


# noise floor -----------------------------------------------------------------------------


def calibration(size: int, seed: int, *, blocks: bool = True) -> tuple[Sample, Sample]:
    values = 1000 * np.exp(0.1 * np.random.default_rng(seed).normal(size=(2, size)))
    a, b = (
        Sample.of(name, each.tolist(), blocks=blocks)
        for name, each in zip("ab", values, strict=True)
    )
    return a, b


@pytest.mark.parametrize("size", [6, 10, 20])
@pytest.mark.parametrize("blocks", [True, False])
def test_identical_arms_seldom_show_more_than_the_noise_floor(size: int, blocks: bool) -> None:
    floors = [
        calibrate(*calibration(size, seed, blocks=blocks), TIME, "here").effect
        for seed in range(60)
    ]
    a, b = 0.1 * np.random.default_rng(9).normal(size=(2, 2000, size))
    later = shift(Spans.known(a), Spans.known(b), paired=blocks, confidence=0.95)
    above = np.abs(later.estimate)[:, None] > np.log(floors)
    assert 0.02 <= above.mean() <= 0.08


def test_a_floor_is_what_chance_makes_of_the_signs() -> None:
    a = Sample.of("a", [100.0] * 6, blocks=True)
    b = Sample.of("b", [110.0, 90, 110, 90, 110, 90], blocks=True)
    floor = calibrate(a, b, TIME, "here")
    assert (floor.scale, floor.design, floor.size) == (Scale.RATIO, Design.PAIRED, 6)
    assert floor.observed == pytest.approx(1, abs=0.01)
    assert 1.05 < floor.effect < 1.3
    one_sided = Sample.of("b", [110.0] * 6, blocks=True)
    assert calibrate(a, one_sided, TIME, "here").observed == pytest.approx(1.1)


def test_what_a_calibration_itself_shows_is_noise_too() -> None:
    a = Sample.of("a", [100.0] * 20, blocks=True)
    b = Sample.of("b", [110.0 + 0.1 * n for n in range(20)], blocks=True)
    floor = calibrate(a, b, TIME, "here")
    assert floor.effect == floor.observed == pytest.approx(1.11, abs=0.01)


@pytest.mark.parametrize("size", [12, 13])
def test_all_signs_and_drawn_ones_come_to_about_the_same(size: int) -> None:
    floor = calibrate(*calibration(size, 5), TIME, "here")
    assert floor.effect == pytest.approx(1 + 2.2 * 0.141 / size**0.5, abs=0.06)
    assert floor == calibrate(*calibration(size, 5), TIME, "here")


def test_a_floor_shrinks_with_the_root_of_the_blocks() -> None:
    floor = replace(calibrate(*calibration(10, 1), TIME, "here"), effect=1.1)
    assert floor_of(floor, 40) == pytest.approx(1.1**0.5)
    assert floor_of(replace(floor, scale=Scale.DIFFERENCE, effect=8.0), 40) == pytest.approx(4)


def sessions(
    random: np.random.Generator, of_a: list[int], of_b: list[int], apart: float = 0.1
) -> tuple[Sample, Sample]:
    """Equal arms with so many runs in each session, a day apart; *apart* as a logarithm."""
    level = apart * random.normal(size=len(of_a))
    samples = []
    for arm, counts in (("a", of_a), ("b", of_b)):
        places = np.repeat(np.arange(len(counts)), counts)
        values = 1000 * np.exp(level[places] + 0.03 * random.normal(size=len(places)))
        at = 86_400.0 * places + 60.0 * np.arange(len(places))
        runs = (Observation(value, at_s=t) for value, t in zip(values.tolist(), at, strict=True))
        samples.append(Sample(arm, tuple(runs)))
    return samples[0], samples[1]


@pytest.mark.parametrize("runs", [3, 40])
def test_without_blocks_sessions_are_part_of_the_floor_however_many_runs_they_have(
    runs: int,
) -> None:
    random = np.random.default_rng(runs)
    alone = [runs, 0, runs, 0, runs, 0, runs, 0]
    other = [0, runs, 0, runs, 0, runs, 0, runs]
    below = [compare(*sessions(random, alone, other), TIME).below_noise_floor for _ in range(300)]
    assert sum(map(bool, below)) >= 0.92 * 300


def test_sessions_that_both_arms_share_cancel_out() -> None:
    shared = sessions(np.random.default_rng(1), [10] * 4, [10] * 4)
    assert compare(*shared, TIME).noise_floor is None
    half = sessions(np.random.default_rng(1), [20, 20, 20, 0], [20, 20, 0, 20])
    floor = compare(*half, TIME).noise_floor
    apart = sessions(np.random.default_rng(1), [20, 20, 0, 0], [0, 0, 20, 20])
    all_of_it = compare(*apart, TIME).noise_floor
    assert floor is not None
    assert all_of_it is not None
    assert 1 < floor < all_of_it


def test_the_part_between_sessions_adds_to_what_was_calibrated() -> None:
    a, b = sessions(np.random.default_rng(4), [10, 0, 10, 0], [0, 10, 0, 10])
    floor = replace(calibrate(*calibration(10, 1), TIME, "here"), effect=1.05)
    without, known = compare(a, b, TIME), compare(a, b, TIME, noise_floor=floor)
    assert without.noise_floor is not None
    assert known.noise_floor == pytest.approx(
        np.exp(np.hypot(np.log(without.noise_floor), np.log(1.05)))
    )


def test_without_times_or_several_sessions_nothing_is_known_of_them() -> None:
    a, b = sessions(np.random.default_rng(4), [10, 0], [0, 10])
    assert compare(a, b, TIME).noise_floor is None
    untimed = Sample("a", tuple(replace(o, at_s=None) for o in a.observations))
    assert compare(untimed, b, TIME).noise_floor is None


def test_an_effect_below_the_floor_is_marked_and_keeps_its_verdict() -> None:
    floor = replace(calibrate(*calibration(10, 1), TIME, "here"), effect=1.3)
    a = Sample.of("a", [1000.0 + n for n in range(10)], blocks=True)
    b = Sample.of("b", [1150.0 + n for n in range(10)], blocks=True)
    found = compare(a, b, TIME, noise_floor=floor)
    without = compare(a, b, TIME)
    assert found.verdict == without.verdict
    assert (found.below_noise_floor, without.below_noise_floor) == (True, None)
    assert found.noise_floor == pytest.approx(1.3)
    assert any("identical arms" in note for note in found.notes)
    assert compare(a, b, TIME, noise_floor=replace(floor, effect=1.1)).below_noise_floor is False


def test_a_floor_of_another_kind_is_not_applied_and_that_is_said() -> None:
    floor = calibrate(*calibration(10, 1, blocks=False), TIME, "here")
    a, b = calibration(10, 2)
    found = compare(a, b, TIME, noise_floor=floor)
    assert found.below_noise_floor is None
    assert any("not applied" in note for note in found.notes)
    with pytest.raises(InvalidInput, match="is of total_time_ms"):
        compare(a, b, replace(TIME, metric="downtime_ms"), noise_floor=floor)


def test_between_sessions_more_runs_do_not_lower_the_floor() -> None:
    floor = replace(calibrate(*calibration(10, 1), TIME, "here"), effect=1.3)
    a, b = calibration(40, 2, blocks=False)
    assert compare(a, b, TIME, noise_floor=floor).noise_floor == pytest.approx(1.3)


@pytest.mark.parametrize(
    ("size", "change", "criterion", "why"),
    [
        (5, {}, TIME, "5 runs of each arm"),
        (8, {"value": None}, TIME, "failed"),
        (8, {"censored": True}, TIME, "did not converge"),
        (8, {}, replace(TIME, share=True), "is a share"),
    ],
)
def test_what_is_no_calibration_is_refused(
    size: int, change: dict[str, object], criterion: Criterion, why: str
) -> None:
    a, b = calibration(size, 1)
    first = replace(b.observations[0], **change)  # type: ignore[arg-type]
    assert isinstance(first, Observation)
    with pytest.raises(InvalidInput, match=why) as caught:
        calibrate(a, Sample("b", (first, *b.observations[1:])), criterion, "here")
    assert caught.value.problems[0].remedy


def test_a_calibration_of_zeros_is_a_difference() -> None:
    a = Sample.of("a", [0.0, 2, 1, 0, 3, 1, 0, 2], blocks=True)
    b = Sample.of("b", [1.0, 0, 2, 1, 0, 0, 2, 1], blocks=True)
    floor = calibrate(a, b, Criterion("misses"), "here")
    assert floor.scale is Scale.DIFFERENCE
    found = compare(a, b, Criterion("misses"), noise_floor=floor)
    assert found.below_noise_floor is True
