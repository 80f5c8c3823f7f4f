"""A database for each test of the benchmarks' services."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stores.databases import empty_database
from vmtune.storage import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    url = empty_database(tmp_path / "runs.db")
    with Store.open(url) as opened:
        yield opened
