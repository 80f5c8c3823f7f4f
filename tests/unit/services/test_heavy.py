"""Heavy work is done by other processes: its result and its errors come back, its number is
bounded, and neither too long a computation nor the end of a process does harm."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.qemus.qemu import CHECKOUT
from tests.support.stores.databases import empty_database
from vmtune.errors import NotFound, SetupError
from vmtune.model.host.inventory import Host
from vmtune.services.heavy import work as heavy_work
from vmtune.services.heavy.work import HeavyWork
from vmtune.storage import Store

pytestmark = pytest.mark.integration


def where(store: Store, host: str) -> tuple[int, int, str]:
    return os.getpid(), os.nice(0), store.hosts.get(host).uri


def ends(store: Store) -> None:
    os._exit(3)


def sleeps(store: Store, seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def takes(store: Store, size: int) -> int:
    return len(bytes(size))


def echoes(store: Store, what: bytes) -> bytes:
    return what


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))  # its functions are this module's
    found = empty_database(tmp_path / "vmtune.db")
    with Store.open(found) as store:
        store.hosts.add(Host("a", "qemu:///system", "", "", datetime.now(UTC)))
    return found


@asynccontextmanager
async def working(url: str, **limits: Any) -> AsyncIterator[HeavyWork]:
    work = HeavyWork(url, **{"processes": 1, **limits})
    try:
        yield work
    finally:
        await work.close()


def children() -> set[int]:
    found = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()
    return {int(each) for each in found.split()}


def prepare(folder: str) -> None:
    _PREPARED.append(folder)


_PREPARED: list[str] = []


def prepared(store: Store) -> list[str]:
    return _PREPARED


async def test_each_process_prepares_first(url: str) -> None:
    async with working(url, begin=(prepare, ("here",))) as work:
        assert await work.run(prepared) == ["here"]
    assert _PREPARED == []  # that was another process


async def test_it_is_done_by_another_process_that_gives_way(url: str) -> None:
    before = children()
    async with working(url) as work:
        pid, niceness, uri = await work.run(where, "a")
        assert pid in children()
        assert niceness == min(os.nice(0) + 10, 19)
        assert uri == "qemu:///system"
        assert (await work.run(where, "a"))[0] == pid
        large = os.urandom(3 << 20)
        assert await work.run(echoes, large) == large
    assert children() <= before


async def test_its_errors_are_the_callers(url: str) -> None:
    async with working(url) as work:
        with pytest.raises(NotFound, match="b") as caught:
            await work.run(where, "b")
        assert caught.value.problems[0].field == "host"
        assert (await work.run(where, "a"))[2]


async def test_too_much_memory_and_an_end_are_told(url: str) -> None:
    async with working(url) as work:
        with pytest.raises(SetupError, match="more memory") as caught:
            await work.run(takes, 7 << 30)
        assert caught.value.problems[0].code == "too_large"
        with pytest.raises(SetupError, match="was ended"):
            await work.run(ends)
        assert (await work.run(where, "a"))[2]


async def test_what_takes_too_long_is_given_up(url: str) -> None:
    async with working(url, within_s=5.0, begin=(prepare, ("here",))) as work:
        with pytest.raises(SetupError, match="more than 5 s"):
            await work.run(sleeps, 60.0)
        assert (await work.run(where, "a"))[2]


async def test_a_slow_start_is_no_part_of_the_work(url: str) -> None:
    async with working(url, within_s=5.0, begin=(time.sleep, (6.0,))) as work:
        assert await work.run(sleeps, 0.1) == 0.1


async def test_one_that_does_not_start_is_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heavy_work, "_STARTS_WITHIN_S", 0.5)
    before = children()
    async with working(url, begin=(time.sleep, (60.0,))) as work:
        with pytest.raises(SetupError, match=r"did not start within 0\.5 s") as caught:
            await work.run(where, "a")
        assert caught.value.problems[0].code == "busy"
        assert children() <= before


async def test_its_number_is_bounded(url: str) -> None:
    async with working(url, max_waiting=2) as work:
        asked = [asyncio.create_task(work.run(sleeps, 0.2)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(SetupError, match="wait already") as caught:
            await work.run(where, "a")
        assert caught.value.problems[0].code == "busy"
        assert await asyncio.gather(*asked) == [0.2] * 3
        assert (await work.run(where, "a"))[2]


async def test_nobody_waits_for_who_has_gone(url: str) -> None:
    async with working(url) as work:
        asked = asyncio.create_task(work.run(sleeps, 60.0))
        await asyncio.sleep(0.5)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert (await work.run(where, "a"))[2]
