"""The rest of the short form of the fault suite: tries of each fault of services on PostgreSQL.

A file of its own, so that both halves can run side by side. ``make test`` tries one of them once,
``make test-long`` all of them twice.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fault.faults import FAULTS
from tests.fault.suite import try_often
from tests.fault.testbed import FaultTestbed, Kind, testbed
from tests.support.hosts.live import why_no_lab
from tests.support.stores.postgres import why_no_postgres

WHY_NOT = why_no_lab() or why_no_postgres()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "never")
TRIES = 2
SEED = 3
OFTEN = "one-of-two"
SHARED = [name for name, fault in FAULTS.items() if fault.kind in (Kind.POSTGRES, Kind.TWO)]


@pytest.fixture(scope="module")
def it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultTestbed]:
    with testbed(Kind.TWO, tmp_path_factory.mktemp("shared"), number=64) as made:
        yield made


def test_nothing_is_lost_by_one_of_two(it: FaultTestbed) -> None:
    (one,) = try_often(it, OFTEN, [1], SEED)
    assert one.wrong == ()


@pytest.mark.long
@pytest.mark.parametrize("name", SHARED)
def test_nothing_is_lost(it: FaultTestbed, name: str) -> None:
    tried = try_often(it, name, range(1, TRIES + 1), SEED)
    assert [one.wrong for one in tried] == [()] * TRIES
