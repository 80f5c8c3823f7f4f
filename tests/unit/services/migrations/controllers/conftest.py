"""A world whose VMs have dirty rings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.simulated.world import World, world


@pytest.fixture(autouse=True)
def _waits_for_the_first_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long that takes on a busy machine."""
    monkeypatch.setattr("vmtune.engine.reaper.loop.FIRST_ROUND_WITHIN_S", 20.0)


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path, ring_entries=65536) as made:
        yield made
