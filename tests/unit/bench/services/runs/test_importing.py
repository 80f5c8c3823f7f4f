"""How an imported file is taken in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from vmtune.bench.services.runs import importing
from vmtune.bench.services.runs.importing import ImportReader
from vmtune.errors import InvalidInput

pytestmark = pytest.mark.integration


async def test_a_file_is_taken_in_no_faster_than_32_mib_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The waits are counted, not timed: a byte waits for its share of a second."""
    waited: list[float] = []
    really = asyncio.sleep

    async def sleep(delay_s: float) -> None:
        waited.append(delay_s)
        await really(0)

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield b" " * (2 << 20)

    monkeypatch.setattr(importing, "pause", sleep)
    with pytest.raises(InvalidInput) as refused:
        await ImportReader().read(parts(), "spaces")
    assert refused.value.problems[0].code == "not_json"
    assert waited == pytest.approx([1 / 16] * 4)
