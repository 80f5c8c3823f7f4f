"""Runs as Parquet files: read back to the same values, and by other programs with their types."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from pyarrow import parquet

from tests.unit.bench.files.test_exchange import RUN, any_run
from vmtune.bench.files.parquet import MARK, from_parquet, to_parquet
from vmtune.bench.model.runs.run import Run
from vmtune.errors import InvalidInput
from vmtune.model.migration.record import Sample


@given(any_run)
def test_every_run_comes_back(run: Run) -> None:
    content = to_parquet(run)
    assert content[:4] == content[-4:] == MARK
    assert from_parquet(content) == run


def test_a_number_that_no_column_of_its_type_holds_comes_back_all_the_same() -> None:
    """Two series have the column, one of them with fractions."""
    assert RUN.record is not None
    far = replace(RUN.record.samples[0], at_ms=(1 << 53) + 1)
    assert isinstance(far, Sample)
    run = replace(RUN, record=replace(RUN.record, samples=(far,)))
    assert from_parquet(to_parquet(run)) == run


def test_other_programs_find_numbers_as_numbers() -> None:
    table = parquet.read_table(io.BytesIO(to_parquet(RUN)))
    types = {name: str(table.schema.field(name).type) for name in table.column_names}
    found = {name: types[name] for name in ("part", "value", "at_ms", "iteration", "worker")}
    assert found == {
        "part": "string", "value": "double", "at_ms": "double", "iteration": "int64",
        "worker": "int64",
    }  # fmt: skip
    rows = table.to_pylist()
    metrics = {row["name"]: row["value"] for row in rows if row["part"] == "metric"}
    assert metrics == RUN.metrics
    assert RUN.record is not None
    samples = [row for row in rows if row["part"] == "samples"]
    assert [row["at_ms"] for row in samples] == [each.at_ms for each in RUN.record.samples]


def written(**columns: Any) -> bytes:
    out = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), out)
    return out.getvalue()


OWN = {"name": [None], "value": [None], "json": [None]}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "cannot be read"),
        (to_parquet(RUN)[:-9], "cannot be read"),
        (written(a=[1]), "no column part"),
        (written(part=["metric"], **OWN), "no row of the run itself"),
        (written(part=["odd"], **OWN), "is a 'odd'"),
        (written(part=["run"], **{**OWN, "json": ["{"]}), "Expecting"),
        (written(part=["run"], **{**OWN, "json": ["[]"]}), "no row of the run itself"),
        (written(part=["run"], **{**OWN, "json": [1]}), "not a table of a run"),
    ],
)
def test_what_is_no_run_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as caught:
        from_parquet(content)
    assert [problem.field for problem in caught.value.problems] == ["file"]


def test_a_table_that_holds_too_much_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vmtune.bench.files.parquet.MAX_BYTES", 1000)
    with pytest.raises(InvalidInput, match="more than"):
        from_parquet(to_parquet(RUN))
