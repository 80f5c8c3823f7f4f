"""The connections of the jobs' database, by every SQLite that there is."""

from __future__ import annotations

import contextlib
import time

import pytest

from vmtune.jobs import database
from vmtune.jobs.database import JobsConnection


@pytest.mark.parametrize("knows_since", [(3, 42), (99,)], ids=["as it is", "of an old SQLite"])
def test_a_column_may_have_the_time_with_its_fraction_as_default(
    monkeypatch: pytest.MonkeyPatch, knows_since: tuple[int, ...]
) -> None:
    """As dbos has it by Python 3.12 and later, for columns that may not be null."""
    monkeypatch.setattr(database, "_WITH_SUBSEC", knows_since)
    before = time.time() * 1000 - 1
    with contextlib.closing(JobsConnection(":memory:")) as connection:
        connection.execute(
            "CREATE TABLE t (id INTEGER, at INTEGER NOT NULL DEFAULT (unixepoch('subsec') * 1000))"
        )
        connection.execute("INSERT INTO t (id) VALUES (1)")
        ((at,),) = connection.execute("SELECT at FROM t")
    assert before <= at <= time.time() * 1000 + 1
