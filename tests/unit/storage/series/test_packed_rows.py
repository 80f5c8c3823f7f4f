from __future__ import annotations

import json
import math
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.records import any_record, make_record
from tests.support.samples import make_samples
from vmtune.bench.model.runs.run import RunRecord, Silence
from vmtune.bench.model.runs.series import KINDS, apart
from vmtune.errors import InvalidInput
from vmtune.model.migration.record import Sample
from vmtune.storage.series.packed_rows import pack, unpack


@given(any_record)
def test_every_series_comes_back(record: RunRecord) -> None:
    _, rows = apart(record)
    for series, found in rows.items():
        kind = KINDS[series]
        back = unpack(kind, pack(kind, found))
        assert back == found
        assert repr(back) == repr(found)  # 1 is not 1.0


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_fractions_come_back_to_the_last_digit(numbers: list[float]) -> None:
    rows = tuple(Silence(number, -number) for number in numbers)
    kept = [(math.copysign(1, row.at_ms), row) for row in unpack(Silence, pack(Silence, rows))]
    assert kept == [(math.copysign(1, row.at_ms), row) for row in rows]


def test_it_takes_little_room() -> None:
    samples = make_samples(1000)
    assert len(pack(Sample, samples)) < 40 * len(samples)
    _, rows = apart(make_record(1000))
    total = sum(len(pack(KINDS[series], found)) for series, found in rows.items())
    assert total < 60 * sum(map(len, rows.values()))


def test_a_chunk_is_readable_without_the_program() -> None:
    stored: dict[str, Any] = json.loads(zlib.decompress(pack(Silence, (Silence(1.5, 2.25),))))
    assert stored == {"at_ms": {"by": [1500], "per": 1000}, "duration_ms": {"by": [2250],
                      "per": 1000}}  # fmt: skip


def test_a_damaged_chunk_is_told() -> None:
    broken = zlib.compress(json.dumps({"at_ms": [1.0]}).encode())
    with pytest.raises(InvalidInput, match="duration_ms"):
        unpack(Silence, broken)
