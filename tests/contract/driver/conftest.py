"""What every driver has to do, whatever is behind it: a fake, QMP sockets or libvirt."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.drivers.benches import Bench, BenchKind, bench_kinds


@pytest.fixture(params=[pytest.param(k, id=k.id) for k in bench_kinds()])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    kind: BenchKind = request.param
    if kind.why_not:
        pytest.skip(kind.why_not)
    async with kind.open(tmp_path) as opened:
        yield opened
