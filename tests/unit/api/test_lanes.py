"""What an operator waits for does not wait behind the rest."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from tests.support.served.api import Api
from vmtune.services.lanes import FOR_OPERATOR, Lanes


@pytest.fixture
async def lanes() -> AsyncIterator[Lanes]:
    made = Lanes(threads=2, of_operators=1)
    asyncio.get_running_loop().set_default_executor(made)
    yield made
    made.shutdown()


async def test_an_operator_has_threads_that_the_rest_does_not_take(lanes: Lanes) -> None:
    goes_on = threading.Event()
    others = [asyncio.create_task(asyncio.to_thread(goes_on.wait, 30)) for _ in range(10)]
    await asyncio.sleep(0)

    async def operator() -> str:
        FOR_OPERATOR.set(True)
        return await asyncio.to_thread(lambda: threading.current_thread().name)

    assert (await asyncio.create_task(operator())).startswith("vmtune-operators")
    assert not any(task.done() for task in others)
    goes_on.set()
    assert all(await asyncio.gather(*others))


async def test_changes_are_for_operators_and_reads_are_not(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    get = api.container.hosts._store.hosts.get

    def noting(name: str) -> object:
        seen.append(FOR_OPERATOR.get())
        return get(name)

    monkeypatch.setattr(api.container.hosts._store.hosts, "get", noting)
    await api.get("/hosts/a")
    assert seen and not any(seen)
    seen.clear()
    api.container.hosts._drivers.clear()
    await api.send("PUT", "/hosts/a/limits", {"values": {"vm_max_map_count": 262144}})
    assert seen and all(seen)
