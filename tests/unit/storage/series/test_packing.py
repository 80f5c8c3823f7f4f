from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.samples import make_samples
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


@given(st.lists(any_sample, min_size=1, max_size=4), st.lists(any_sample, min_size=1, max_size=4))
def test_samples_come_back_packed_at_once_or_onto_others(
    first: list[Sample], more: list[Sample]
) -> None:
    packed = pack(more, onto=pack(first))
    assert list(unpack(packed)) == [*first, *more]
    assert packed == pack([*first, *more])


def test_types_come_back() -> None:
    (found,) = unpack(pack(make_samples(1)))
    assert isinstance(found.status, QemuStatus)
    assert found.boundary is True
    assert found.expected_downtime_ms is None


def test_a_chunk_can_be_read_without_vmtune() -> None:
    samples = make_samples(3)
    stored = json.loads(zlib.decompress(pack(samples)))
    assert stored["at_ms"] == [
        samples[0].at_ms,
        samples[1].at_ms - samples[0].at_ms,
        samples[2].at_ms - samples[1].at_ms,
    ]
    assert stored["status"] == ["active", "active", "completed"]


@pytest.mark.parametrize("seed", range(3))
def test_a_sample_takes_at_most_60_bytes(seed: int) -> None:
    assert len(pack(make_samples(200, seed))) / 200 <= 60


@given(st.integers(1, 30), st.integers(-1, 2500))
def test_later_ones_alone_are_read(number: int, after_ms: int) -> None:
    samples = make_samples(number)
    later = [sample for sample in samples if sample.at_ms > after_ms]
    assert list(unpack(pack(samples), after_ms)) == later
