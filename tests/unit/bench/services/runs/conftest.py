"""The service of benchmark runs, for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.benchmarks.bench_runs import FakeRunner
from tests.unit.bench.services.runs.run_service import It, assemble, started
from vmtune.storage import Store


@pytest.fixture
async def it(store: Store, tmp_path: Path) -> AsyncIterator[It]:
    async with started(assemble(store, tmp_path, FakeRunner())) as made:
        yield made
