"""Corrections of forecasts by what happened."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime

import pytest

from vmtune.forecast.conditions import conditions_of
from vmtune.forecast.correction import FEWEST_LINEAR, Record, features, learn
from vmtune.forecast.learnt import FEWEST
from vmtune.forecast.path import Throughput
from vmtune.forecast.probe import DirtyProbe
from vmtune.forecast.prospect import expect
from vmtune.forecast.ranges import Range
from vmtune.model.host.dirty_rates import DirtyPoint

MIB = 1 << 20
COMPUTED = Range(80.0, 100.0, 130.0)


def records(
    count: int, times: float = 2.0, slope: float = 0.0, zstd: float = 1.0, noise: float = 0.05
) -> list[Record]:
    """What happened is *times* what was computed, by the first feature's power *slope*, and *zstd*
    times that where pages are compressed."""
    chance = random.Random(count)
    found = []
    for n in range(count):
        one, packed = chance.uniform(-1, 1), n % 3 == 0
        ratio = times * math.exp(slope * one + chance.gauss(0, noise)) * (zstd if packed else 1)
        given = (one, chance.uniform(-1, 1), float(packed), 0.0, float(packed), 0.0)
        found.append(Record(given, COMPUTED, 100 * ratio, f"vm{n % 12}"))
    return found


def test_of_too_few_nothing_is_learnt() -> None:
    assert learn(records(FEWEST - 1)) is None
    assert learn(records(FEWEST)) is not None


def test_what_is_always_off_by_as_much_is_corrected() -> None:
    found = learn(records(40))
    assert found is not None
    told = found.apply((0.0,) * 6, COMPUTED)
    assert told.likely == pytest.approx(200, rel=0.1)
    assert told.low < told.likely < told.high < 300


def test_pages_that_are_sent_otherwise_are_corrected_by_their_own() -> None:
    found = learn(records(FEWEST_LINEAR - 1, zstd=0.1))
    assert found is not None and found.name == "alike"
    assert found.apply((0, 0, 1.0, 0, 1.0, 0), COMPUTED).likely == pytest.approx(20, rel=0.1)
    assert found.apply((0, 0, 0.0, 0, 0.0, 0), COMPUTED).likely == pytest.approx(200, rel=0.1)


def test_the_linear_one_is_taken_only_where_it_wins_and_records_are_enough() -> None:
    sloped = learn(records(120, slope=1.0))
    assert sloped is not None and sloped.name == "linear"
    assert sloped.apply((1.0, 0, 0, 0, 0, 0), COMPUTED).likely == pytest.approx(544, rel=0.15)
    few = learn(records(FEWEST_LINEAR - 1, slope=1.0))
    assert few is not None and few.name != "linear"


def test_wild_records_do_not_bend_it() -> None:
    usual = records(120, slope=1.0)
    wild = [Record(r.features, r.computed, 1e6, r.group) for r in usual[:6]]
    found = learn([*wild, *usual[6:]])
    assert found is not None
    assert found.apply((0.0,) * 6, COMPUTED).likely == pytest.approx(200, rel=0.2)


def of_vms(spread: float) -> list[Record]:
    """Those of 20 VMs, 4 each: what is off is a factor of its own of each VM."""
    chance = random.Random(7)
    found = []
    for vm in range(20):
        own = chance.gauss(0, spread)
        for _ in range(4):
            given = (chance.uniform(-1, 1), chance.uniform(-1, 1), 0.0, 0.0, 0.0, 0.0)
            happened = 200 * math.exp(own + chance.gauss(0, 0.05))
            found.append(Record(given, COMPUTED, happened, f"vm{vm}"))
    return found


def test_a_vm_that_migrated_before_is_forecast_by_its_own_records() -> None:
    records = of_vms(spread=0.8)
    found = learn(records)
    assert found is not None and found.own_bounds is not None
    own = [r.happened for r in records if r.group == "vm3"]
    known = found.apply((0.0,) * 6, COMPUTED, "vm3")
    other = found.apply((0.0,) * 6, COMPUTED, "a stranger")
    middle = sum(own) / len(own)
    assert abs(math.log(known.likely / middle)) < abs(math.log(other.likely / middle))
    assert known.high / known.low < other.high / other.low
    packed = found.apply((0.0, 0.0, 1.0, 0.0, 1.0, 0.0), COMPUTED, "vm3")
    assert packed.likely == pytest.approx(other.likely)  # of it the VM has shown nothing


def test_own_records_do_not_count_where_vms_are_alike() -> None:
    found = learn(of_vms(spread=0.0))
    assert found is not None and found.own_bounds is None
    assert found.apply((0.0,) * 6, COMPUTED, "vm3") == found.apply((0.0,) * 6, COMPUTED)


def test_its_bounds_hold_what_comes_next_as_often_as_is_meant() -> None:
    found = learn(records(200, slope=1.0, noise=0.3))
    assert found is not None
    fresh = records(601, slope=1.0, noise=0.3)
    held = [found.apply(each.features, each.computed).holds(each.happened) for each in fresh]
    assert 0.85 <= sum(held) / len(held) <= 0.95


def test_one_vm_alone_is_enough() -> None:
    alone = [Record(r.features, r.computed, r.happened, "vm") for r in records(60)]
    assert learn(alone) is not None


def test_features_are_of_what_ends() -> None:
    points = tuple(DirtyPoint(float(ms), 0.01 * ms * MIB) for ms in (64, 1000, 8000))
    probe = DirtyProbe(points, 256 * MIB, 200 * MIB, datetime(2026, 11, 21, tzinfo=UTC), 1.0)
    path = Throughput(Range.exactly(100.0 * MIB), Range.exactly(100.0 * MIB), 3)
    plain = features(probe, path, {}, expect(probe, path, conditions_of({})))
    packed = {"multifd": True, "multifd_channels": 2, "multifd_compression": "zstd"}
    zstd = features(probe, path, dict(packed), expect(probe, path, conditions_of({}), True))
    assert plain is not None and zstd is not None
    assert len(plain) == len(zstd)
    assert (plain[-4:], zstd[-4:]) == ((0, 0, 0, 0), (1, 0, 1, 0))
    busy = tuple(DirtyPoint(float(ms), 1.0 * ms * MIB) for ms in (64, 100, 200))
    endless = DirtyProbe(busy, 256 * MIB, 200 * MIB, datetime(2026, 11, 21, tzinfo=UTC), 1.0)
    assert features(endless, path, {}, expect(endless, path, conditions_of({}))) is None
