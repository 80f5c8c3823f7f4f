"""Samples, rounds and the series of runs as they are packed."""

from __future__ import annotations

import json
import math
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.benchmarks.records import any_record, make_record
from tests.support.examples.rounds import make_rounds
from tests.support.examples.samples import make_samples
from vmtune.bench.model.runs.run import RunRecord, Silence
from vmtune.bench.model.runs.series import KINDS, apart
from vmtune.errors import InvalidInput
from vmtune.model.migration.controller_record import ReaperRound
from vmtune.model.migration.record import QemuStatus, Sample
from vmtune.storage.series.packing import pack, unpack

any_sample = st.builds(
    Sample,
    **{
        name: st.integers(-(1 << 63), 1 << 64)
        for name, kind in Sample.__annotations__.items()
        if kind == "int"
    },
    status=st.sampled_from(QemuStatus),
    boundary=st.booleans(),
    expected_downtime_ms=st.none() | st.integers(0, 1 << 40),
)
tenths = st.integers(0, 10**7).map(lambda n: n / 10)
fills = st.lists(st.integers(0, 5000).map(lambda n: n / 1000) | st.floats(0, 1), max_size=4)
any_round = st.builds(
    ReaperRound,
    at_ms=st.integers(-(10**6), 1 << 50),
    interval_ms=st.integers(50, 60_000),
    elapsed_ms=tenths | st.floats(0, 1e7),
    cost_ms=tenths,
    fills=fills.map(tuple),
)


def stored(packed: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(zlib.decompress(packed))
    return found


def chunk(columns: dict[str, Any]) -> bytes:
    return zlib.compress(json.dumps(columns).encode())


@given(st.lists(any_sample, min_size=1, max_size=4), st.lists(any_sample, min_size=1, max_size=4))
def test_samples_come_back_packed_at_once_or_onto_others(
    first: list[Sample], more: list[Sample]
) -> None:
    packed = pack(Sample, more, onto=pack(Sample, first))
    assert unpack(Sample, packed) == [*first, *more]
    assert packed == pack(Sample, [*first, *more])


@given(st.lists(any_round, min_size=1, max_size=4), st.lists(any_round, min_size=1, max_size=4))
def test_rounds_come_back_packed_at_once_or_onto_others(
    first: list[ReaperRound], more: list[ReaperRound]
) -> None:
    packed = pack(ReaperRound, more, onto=pack(ReaperRound, first))
    assert unpack(ReaperRound, packed) == [*first, *more]
    assert packed == pack(ReaperRound, [*first, *more])


@given(any_record)
def test_every_series_of_a_run_comes_back(record: RunRecord) -> None:
    _, rows = apart(record)
    for series, found in rows.items():
        kind = KINDS[series]
        back = tuple(unpack(kind, pack(kind, found)))
        assert back == found
        assert repr(back) == repr(found)  # 1 is not 1.0


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_fractions_come_back_to_the_last_digit(numbers: list[float]) -> None:
    rows = tuple(Silence(number, -number) for number in numbers)
    kept = [(math.copysign(1, row.at_ms), row) for row in unpack(Silence, pack(Silence, rows))]
    assert kept == [(math.copysign(1, row.at_ms), row) for row in rows]


def test_types_come_back() -> None:
    (found,) = unpack(Sample, pack(Sample, make_samples(1)))
    assert isinstance(found.status, QemuStatus)
    assert found.boundary is True
    assert found.expected_downtime_ms is None


def test_a_chunk_can_be_read_without_vmtune() -> None:
    samples = make_samples(3)
    columns = stored(pack(Sample, samples))
    assert columns["at_ms"] == {
        "by": [
            samples[0].at_ms,
            samples[1].at_ms - samples[0].at_ms,
            samples[2].at_ms - samples[1].at_ms,
        ],
        "per": 1,
    }
    assert columns["status"] == ["active", "active", "completed"]
    first, second = make_rounds(2)
    columns = stored(pack(ReaperRound, [first, second]))
    assert columns["at_ms"] == {"by": [first.at_ms, second.at_ms - first.at_ms], "per": 1}
    assert columns["fills"]["lists"][0] == [round(fill * 1000) for fill in first.fills]
    assert columns["fills"]["per"] == 1000
    assert stored(pack(Silence, (Silence(1.5, 2.25),))) == {
        "at_ms": {"by": [15], "per": 10}, "duration_ms": {"by": [2250], "per": 1000}
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_a_sample_takes_at_most_60_bytes(seed: int) -> None:
    assert len(pack(Sample, make_samples(200, seed))) / 200 <= 60


@pytest.mark.parametrize(("vcpus", "most"), [(1, 12), (8, 24), (64, 130)])
def test_a_round_takes_little_room(vcpus: int, most: int) -> None:
    assert len(pack(ReaperRound, make_rounds(400, vcpus=vcpus))) / 400 <= most


def test_a_runs_record_takes_little_room() -> None:
    samples = make_samples(1000)
    assert len(pack(Sample, samples)) < 40 * len(samples)
    _, rows = apart(make_record(1000))
    total = sum(len(pack(KINDS[series], found)) for series, found in rows.items())
    assert total < 60 * sum(map(len, rows.values()))


@given(st.integers(1, 30), st.integers(-1, 2500))
def test_later_ones_alone_are_read(number: int, after_ms: int) -> None:
    samples = make_samples(number)
    later = [sample for sample in samples if sample.at_ms > after_ms]
    assert unpack(Sample, pack(Sample, samples), after_ms) == later


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ({"at_ms": [1.0]}, "duration_ms"),
        ({"at_ms": [1.0], "duration_ms": []}, "cut short"),
        ({"at_ms": [1.0], "duration_ms": [1.0], "odd": [1]}, "odd"),
        ({"at_ms": {"by": [1]}, "duration_ms": [1.0]}, "per"),
    ],
)
def test_a_damaged_chunk_is_told(columns: dict[str, Any], names: str) -> None:
    with pytest.raises(InvalidInput, match=names):
        unpack(Silence, chunk(columns))
    with pytest.raises(InvalidInput, match="damaged"):
        unpack(Silence, b"nothing compressed")


def test_what_earlier_releases_packed_is_read_and_continued() -> None:
    first, second, third = make_samples(3)
    rows = (first, second)
    as_is = ("status", "boundary", "expected_downtime_ms")
    earlier: dict[str, Any] = {
        name: [getattr(first, name), getattr(second, name)]
        if name in as_is
        else [getattr(first, name), getattr(second, name) - getattr(first, name)]
        for name in Sample.__annotations__
    }
    assert unpack(Sample, chunk(earlier)) == list(rows)
    assert unpack(Sample, pack(Sample, [third], onto=chunk(earlier))) == [*rows, third]


def test_rounds_that_earlier_releases_packed_are_read_and_continued() -> None:
    rounds = (
        ReaperRound(-300, 100, 103.5, 3.5, (0.25, 0.1)),
        ReaperRound(-190, 110, 110.0, 0.1, (1.0, 0.0)),
    )
    earlier = chunk(
        {
            "at_ms": [-300, 110],
            "interval_ms": [100, 110],
            "elapsed_tenths_ms": [1035, 1100],
            "cost_tenths_ms": [35, 1],
            "fills_per_mille": [[250, 100], [1000, 0]],
        }
    )
    assert unpack(ReaperRound, earlier) == list(rounds)
    last = ReaperRound(-80, 110, 110.2, 0.2, (0.5, 0.5))
    assert unpack(ReaperRound, pack(ReaperRound, [last], onto=earlier)) == [*rounds, last]
