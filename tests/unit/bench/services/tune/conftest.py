"""The service of studies, for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.benchmarks.studies import TunedRunner
from tests.unit.bench.services.tune.study_service import Bench, make, started
from vmtune.storage import Store


@pytest.fixture
async def bench(store: Store, tmp_path: Path) -> AsyncIterator[Bench]:
    async with started(make(store, tmp_path, TunedRunner())) as made:
        yield made
