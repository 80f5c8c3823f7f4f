"""Runs as files: what is exported is imported to the same values."""

from __future__ import annotations

import csv
import gzip
import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.benchmarks.records import any_record, fraction, make_record, values, words
from vmtune.bench.files import exchange
from vmtune.bench.files.exchange import from_csv_gz, from_document, is_own, to_csv_gz, to_document
from vmtune.bench.machine.environment import fingerprint
from vmtune.bench.model.metrics.table import METRICS
from vmtune.bench.model.runs.run import Run, RunState, Slot, Testbed
from vmtune.errors import InvalidInput

AT = datetime(2026, 11, 21, 4, 30, 1, 5, tzinfo=UTC)
PLACE = {"cpu": {"count": 2, "model": "x"}, "accelerator": "kvm"}
RUN = Run(
    uuid4(), "quick/busy", {"name": "quick/busy", "vm": {"vcpus": 2}}, {"multifd": True},
    RunState.COMPLETED, AT, "fast", 3, Testbed.DIRECT, "patched", {"kvm": None}, "rack1",
    Slot(uuid4(), "tuned", 1, 2), AT, AT, "", fingerprint(PLACE), PLACE, {"load_1min": 0.25},
    {"total_time_ms": 1234.0, "downtime_ms": 30.5}, make_record(40),
)  # fmt: skip

moments = st.none() | st.datetimes(timezones=st.just(UTC))
leaves = st.none() | st.booleans() | st.integers(-9, 9) | words
environments = st.dictionaries(words, leaves | st.dictionaries(words, leaves), max_size=2)
any_run = st.builds(
    lambda **parts: Run(**parts, fingerprint=fingerprint(parts["environment"])),
    id=st.uuids(),
    scenario=words,
    setup=st.dictionaries(words, leaves, max_size=2),
    values=st.dictionaries(words, values, max_size=2),
    state=st.sampled_from([state for state in RunState if state.ended]),
    created_at=st.datetimes(timezones=st.just(UTC)),
    profile=words,
    revision=st.integers(0, 9),
    testbed=st.sampled_from(Testbed),
    qemu=words,
    host=words,
    slot=st.none() | st.builds(Slot, st.uuids(), words, st.integers(0, 9), st.integers(0, 9)),
    started_at=moments,
    ended_at=moments,
    failure=words,
    environment=environments,
    conditions=st.dictionaries(words, fraction, max_size=2),
    metrics=st.dictionaries(st.sampled_from(list(METRICS)), fraction, max_size=3),
    record=st.none() | any_record,
    imported_from=words,
)


@given(any_run)
def test_every_run_comes_back_from_json(run: Run) -> None:
    document = json.loads(json.dumps(to_document(run), allow_nan=False))
    assert is_own(document)
    assert from_document(document) == run


@given(any_run)
def test_every_run_comes_back_from_a_table(run: Run) -> None:
    packed = to_csv_gz(run)
    assert from_csv_gz(packed) == run
    assert to_csv_gz(run) == packed


def test_the_table_is_one_that_other_programs_read() -> None:
    rows = list(csv.DictReader(io.StringIO(gzip.decompress(to_csv_gz(RUN)).decode())))
    assert RUN.record is not None
    samples = [row for row in rows if row["part"] == "samples"]
    assert [int(row["at_ms"]) for row in samples] == [s.at_ms for s in RUN.record.samples]
    assert {row["boundary"] for row in samples} == {"true", "false"}
    assert samples[0]["worker"] == ""
    assert samples[0]["expected_downtime_ms"] == ""
    metrics = {row["name"]: float(row["value"]) for row in rows if row["part"] == "metric"}
    assert metrics == RUN.metrics
    fills = [json.loads(row["fills"]) for row in rows if row["part"] == "rounds"]
    assert RUN.record.reaper is not None
    assert fills == [list(each.fills) for each in RUN.record.reaper.rounds]


def _changed(**parts: Any) -> Any:
    document = to_document(RUN)
    for path, value in parts.items():
        *inner, last = path.split("__")
        part = document
        for name in inner:
            part = part[name]
        part[last] = value
    return document


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"format": "guestperf"}, "format"),
        ({"version": 2}, "version"),
        ({"version": "1"}, "version"),
        ({"more": 1}, "more"),
        ({"run": []}, "run"),
        ({"run__state": "running"}, "run.state"),
        ({"run__state": "gone"}, "run.state"),
        ({"run__environment": {"cpu": 1}}, "run.fingerprint"),
        ({"run__fingerprint": ""}, "run.fingerprint"),
        ({"run__metrics": {"Total Time": 1.0}}, "run.metrics"),
        ({"run__metrics": {"x": float("nan")}}, "file"),
        ({"run__setup": {"x": [float("inf")]}}, "file"),
        ({"run__setup": {"x": "\ud800"}}, "file"),
        ({"run__metrics": {f"m{n}": 1.0 for n in range(1001)}}, "run.metrics"),
        ({"run__created_at": "yesterday"}, "run.created_at"),
        ({"run__record": {}}, "run.record.x"),
        ({"head": []}, "head"),
        ({"head__ended_ms": "x"}, "head.ended_ms"),
        ({"series__samples": {}}, "series.samples.at_ms"),
        ({"series__more": {}}, "series.more"),
    ],
)
def test_what_was_changed_is_refused_by_name(changes: dict[str, Any], field: str) -> None:
    if field == "run.record.x":
        changes = {"run__record": {"x": 1}}
    with pytest.raises(InvalidInput) as caught:
        from_document(_changed(**changes))
    assert caught.value.problems[0].field == field
    assert all(problem.remedy for problem in caught.value.problems)


def test_parts_that_are_missing_are_named() -> None:
    with pytest.raises(InvalidInput) as caught:
        from_document({"format": "vmtune run"})
    assert {p.field for p in caught.value.problems} >= {"version", "run"}
    for raw in (None, [], "x", 3):
        assert not is_own(raw)
        with pytest.raises(InvalidInput):
            from_document(raw)


def test_a_run_without_a_record_has_none() -> None:
    without = replace(RUN, record=None)
    document = to_document(without)
    assert document["head"] is None
    assert from_document(document).record is None
    assert from_csv_gz(to_csv_gz(without)).record is None


def _table(change: tuple[str, str]) -> bytes:
    text = gzip.decompress(to_csv_gz(RUN)).decode()
    assert change[0] in text
    return gzip.compress(text.replace(*change, 1).encode())


@pytest.mark.parametrize(
    ("packed", "why"),
    [
        (b"", "cut off"),
        (b"nonsense", "not packed"),
        (to_csv_gz(RUN)[:-20], "cut off"),
        (gzip.compress(b"\xff\xfe"), "not packed"),
        (gzip.compress(b"a,b\n1,2\n"), "other columns"),
        (gzip.compress(b"part,name,value,json\n"), "no row of the run"),
        (gzip.compress(b"part,name,value,json\nrun,,,3\n"), "no row of the run"),
        (_table(("\nsamples,", "\nsnails,")), "'snails'"),
        (_table(("\nmetric,total_time_ms,1234.0", "\nmetric,total_time_ms,x")), "line 3"),
    ],
    ids=lambda value: value if isinstance(value, str) else "table",  # packed bytes hold the time
)
def test_what_is_no_table_is_refused(packed: bytes, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        from_csv_gz(packed)


def test_a_wrong_cell_is_named_by_its_place() -> None:
    with pytest.raises(InvalidInput) as caught:
        from_csv_gz(_table((",active,", ",activated,")))
    assert caught.value.problems[0].field == "series.samples.status.0"


def test_a_table_that_would_fill_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "MAX_BYTES", 1000)
    with pytest.raises(InvalidInput, match="more than"):
        from_csv_gz(to_csv_gz(RUN))
