"""Which QEMUs may never throttle again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.examples.migrations import make_migration
from vmtune.intent.aborted_throttle import may_not_throttle
from vmtune.model.migration.record import MigrationState


def broken_off(**fields: Any) -> Any:
    usual = {
        "state": MigrationState.CANCELLED,
        "wanted": {"auto_converge": True},
        "started_at": datetime.now(UTC),
    }
    return make_migration(**(usual | fields))


COMPLETED = {"state": MigrationState.COMPLETED}


@pytest.mark.parametrize(
    ("records", "found"),
    [
        ([], False),
        ([broken_off()], True),
        ([broken_off(state=MigrationState.FAILED)], True),
        ([broken_off(wanted={})], False),
        ([broken_off(started_at=None)], False),
        ([broken_off(source="c")], False),
        ([broken_off(**COMPLETED)], False),
        ([broken_off(wanted={}), broken_off()], True),
        ([broken_off(**COMPLETED, source="b", destination="a"), broken_off()], False),
        ([broken_off(**COMPLETED), broken_off()], True),
    ],
)
def test_whose_throttled_migration_was_broken_off(records: list[Any], found: bool) -> None:
    assert may_not_throttle(records, "a") is found
