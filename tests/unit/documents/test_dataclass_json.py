"""Dataclasses as JSON: what was written is read, and nothing that was not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

import pytest
from annotated_types import Interval, MaxLen
from hypothesis import given
from hypothesis import strategies as st

from tests.support.benchmarks.records import any_record, any_round, any_sample
from vmtune.bench.model.runs.run import RunRecord, Silence
from vmtune.bench.model.runs.series import KINDS, Head, Series, apart, joined
from vmtune.documents.dataclass_json import Written, from_columns, from_json, to_columns, to_json
from vmtune.documents.strict import Reader
from vmtune.errors import InvalidInput
from vmtune.model.migration.controller_record import ReaperRound
from vmtune.model.migration.record import Sample
from vmtune.model.tunables.tunable import Value
from vmtune.units import Unit


class Word(StrEnum):
    ONE = "one"
    TWO = "two"


@dataclass(frozen=True)
class Part:
    count: int
    share: float = 0.5


@dataclass(frozen=True)
class Whole:
    id: UUID
    at: datetime
    word: Word
    on: bool
    value: Value
    maybe: Value | None
    parts: tuple[Part, ...]
    by_name: Mapping[str, Part]
    anything: Any
    part: Part | None = None
    names: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.word is Word.TWO and not self.on:
            raise InvalidInput("two is off", field="word", remedy="switch it on")


GOOD: dict[str, Any] = {
    "id": "00000000-0000-4000-8000-00000000000a",
    "at": "2026-11-21T04:30:00+00:00",
    "word": "one",
    "on": True,
    "value": 3,
    "maybe": None,
    "parts": [{"count": 1, "share": 1}, {"count": 2}],
    "by_name": {"a": {"count": 3, "share": 0.25}},
    "anything": {"x": [1, None]},
}


def test_all_kinds_of_fields_are_read() -> None:
    made = from_json(Whole, GOOD)
    assert made == Whole(
        UUID(int=0x4000800000000000000A), datetime(2026, 11, 21, 4, 30, tzinfo=UTC), Word.ONE,
        True, 3, None, (Part(1, 1.0), Part(2)), {"a": Part(3, 0.25)}, {"x": [1, None]},
    )  # fmt: skip
    assert type(made.parts[0].share) is float
    assert from_json(Whole, json.loads(json.dumps(to_json(made)))) == made


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"id": "x"}, ["id"]),
        ({"id": 3}, ["id"]),
        ({"at": "2026-11-21T04:30:00"}, ["at"]),
        ({"at": 17}, ["at"]),
        ({"word": "three"}, ["word"]),
        ({"word": 1}, ["word"]),
        ({"on": 1}, ["on"]),
        ({"value": 0.5}, ["value"]),
        ({"value": None}, ["value"]),
        ({"value": 1 << 63}, ["value"]),
        ({"maybe": []}, ["maybe"]),
        ({"parts": {}}, ["parts"]),
        ({"parts": [{"count": True}, {"share": 1}]}, ["parts.0.count", "parts.1.count"]),
        ({"parts": [{"count": 1.0, "share": "x"}]}, ["parts.0.count", "parts.0.share"]),
        ({"by_name": {"a": {"count": 1, "more": 2}}}, ["by_name.a.more"]),
        ({"by_name": []}, ["by_name"]),
        ({"part": {"count": 1, "share": float("inf")}}, ["part.share"]),
        ({"part": {"count": 1, "share": float("nan")}}, ["part.share"]),
        ({"names": {"a": 1, "b": "x"}}, ["names.b"]),
        ({"more": 1}, ["more"]),
        ({"word": "two", "on": False}, ["word"]),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], fields: list[str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        from_json(Whole, {**GOOD, **change})
    assert [p.field for p in caught.value.problems] == fields
    assert all(p.remedy for p in caught.value.problems)


def test_what_is_missing_is_named_where_there_is_no_default() -> None:
    with pytest.raises(InvalidInput) as caught:
        from_json(Whole, {}, "run")
    missing = [p.field for p in caught.value.problems]
    assert missing == [f"run.{name}" for name in GOOD]
    with pytest.raises(InvalidInput, match="not an object"):
        from_json(Whole, [], "run")


@given(any_record)
def test_a_record_comes_back_as_json_and_in_parts(record: RunRecord) -> None:
    text = json.dumps(to_json(record), allow_nan=False)
    assert from_json(RunRecord, json.loads(text)) == record
    head, rows = apart(record)
    assert joined(head, rows) == record
    assert from_json(Head, json.loads(json.dumps(to_json(head)))) == head
    assert set(rows) == set(Series)
    assert joined(head, {}).samples == ()
    assert head.reaper is None or head.reaper.rounds == ()


@given(st.lists(any_sample, max_size=4), st.lists(any_round, max_size=4))
def test_rows_come_back_from_columns(samples: list[Sample], rounds: list[ReaperRound]) -> None:
    for kind, rows in ((Sample, samples), (ReaperRound, rounds)):
        columns = json.loads(json.dumps(to_columns(kind, rows)))  # type: ignore[type-var]
        reader = Reader()
        assert from_columns(reader, kind, columns, "c") == tuple(rows)
        assert reader.problems == []


@pytest.mark.parametrize(
    ("columns", "fields"),
    [
        ({"at_ms": [1, 2]}, ["s.duration_ms"]),
        ({"at_ms": [1, 2], "duration_ms": [1]}, ["s"]),
        ({"at_ms": [1, "x", "y"], "duration_ms": [1, 2, 3]}, ["s.at_ms.1"]),
        ({"at_ms": {}, "duration_ms": []}, ["s.at_ms"]),
        ({"at_ms": [], "duration_ms": [], "x": []}, ["s.x"]),
        ([], ["s"]),
        ({"at_ms": [float("nan")], "duration_ms": [1]}, ["s.at_ms.0"]),
    ],
)
def test_columns_that_are_none_are_refused(columns: Any, fields: list[str]) -> None:
    reader = Reader()
    assert from_columns(reader, Silence, columns, "s") == ()
    found = [p.field for p in reader.problems]
    assert found[: len(fields)] == fields


def test_whole_numbers_have_a_limit_in_columns_too() -> None:
    columns = to_columns(Sample, [])
    assert from_columns(Reader(), Sample, columns, "s") == ()
    one = {name: [0] for name in columns} | {"status": ["active"], "boundary": [False]}
    assert len(from_columns(Reader(), Sample, one, "s")) == 1
    reader = Reader()
    assert from_columns(reader, Sample, one | {"iteration": [1 << 63]}, "s") == ()
    assert [p.field for p in reader.problems] == ["s.iteration.0"]
    reader = Reader()
    assert from_columns(reader, Sample, one | {"iteration": [True]}, "s") == ()
    assert [p.field for p in reader.problems] == ["s.iteration.0"]


def test_all_series_have_a_time() -> None:
    for kind in KINDS.values():
        assert "at_ms" in kind.__annotations__


@dataclass(frozen=True)
class Bounded:
    """Every way in which a type says more than what it is."""

    size: Annotated[int, Interval(ge=1, le=1 << 20), Unit.BYTES] = 1
    share: Annotated[float, Interval(ge=0, le=1)] = 0.5
    title: Annotated[str, MaxLen(3)] = ""
    counts: Annotated[Mapping[str, Annotated[int, Interval(ge=0, le=9)]], MaxLen(2)] = field(
        default_factory=dict
    )
    parts: Annotated[tuple[Part, ...], MaxLen(1)] | None = None
    words: frozenset[Word] = frozenset()
    shouted: Annotated[
        str, Written(lambda reader, raw, where: reader.text(raw, where, 9).upper(), str.lower)
    ] = ""


def test_bounds_units_and_other_forms_are_read_and_written_by_the_type() -> None:
    raw: dict[str, Any] = {
        "size": 4096, "share": 1.0, "title": "abc", "counts": {"a": 9},
        "parts": [{"count": 1, "share": 0.5}], "words": ["one", "two"], "shouted": "hey",
    }  # fmt: skip
    made = from_json(Bounded, raw)
    assert made == Bounded(
        4096, 1.0, "abc", {"a": 9}, (Part(1),), frozenset({Word.ONE, Word.TWO}), "HEY"
    )
    assert to_json(made) == raw
    assert from_json(Bounded, {"size": "4Ki"}).size == 4096
    assert type(from_json(Bounded, {"share": 1}).share) is float


@pytest.mark.parametrize(
    ("part", "field", "code"),
    [
        ({"size": 0}, "size", "invalid_value"),
        ({"size": "2Mi"}, "size", "invalid_value"),
        ({"share": 1.5}, "share", "invalid_value"),
        ({"title": "abcd"}, "title", "too_long"),
        ({"counts": {"a": 10}}, "counts.a", "invalid_value"),
        ({"counts": {"a": 1, "b": 1, "c": 1}}, "counts", "too_many"),
        ({"parts": [{"count": 1}] * 2}, "parts", "too_many"),
        ({"words": ["three"]}, "words.0", "not_a_choice"),
        ({"shouted": 1}, "shouted", "invalid_value"),
    ],
)
def test_what_is_out_of_bounds_is_refused(part: dict[str, Any], field: str, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        from_json(Bounded, part, "it", "the box")
    assert caught.value.message == "the box cannot be accepted"
    assert [(p.field, p.code) for p in caught.value.problems] == [(f"it.{field}", code)]
    assert caught.value.problems[0].remedy
