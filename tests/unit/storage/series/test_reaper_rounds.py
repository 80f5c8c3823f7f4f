"""Rounds of the reaper as they are packed."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.rounds import make_rounds
from vmtune.model.migration.controller_record import ReaperRound
from vmtune.storage.series.reaper_rounds import pack, unpack

tenths = st.integers(0, 10**7).map(lambda n: n / 10)
any_round = st.builds(
    ReaperRound,
    at_ms=st.integers(-(10**6), 1 << 50),
    interval_ms=st.integers(50, 60_000),
    elapsed_ms=tenths,
    cost_ms=tenths,
    fills=st.lists(st.integers(0, 5000).map(lambda n: n / 1000), max_size=4).map(tuple),
)


@given(st.lists(any_round, min_size=1, max_size=4), st.lists(any_round, min_size=1, max_size=4))
def test_rounds_come_back_packed_at_once_or_onto_others(
    first: list[ReaperRound], more: list[ReaperRound]
) -> None:
    packed = pack(more, onto=pack(first))
    assert list(unpack(packed)) == [*first, *more]
    assert packed == pack([*first, *more])


def test_a_chunk_can_be_read_without_vmtune() -> None:
    first, second = make_rounds(2)
    stored = json.loads(zlib.decompress(pack([first, second])))
    assert stored["at_ms"] == [first.at_ms, second.at_ms - first.at_ms]
    assert stored["fills_per_mille"][0] == [round(fill * 1000) for fill in first.fills]


@pytest.mark.parametrize(("vcpus", "most"), [(1, 12), (8, 24), (64, 130)])
def test_a_round_takes_little_room(vcpus: int, most: int) -> None:
    assert len(pack(make_rounds(400, vcpus=vcpus))) / 400 <= most
