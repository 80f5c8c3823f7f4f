"""Job engines of several services on one PostgreSQL database, each in its own process."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.stores.postgres import new_database, running_postgres, why_no_postgres

PROGRAM = Path(__file__).parent / "jobs_sharing_program.py"
pytestmark = pytest.mark.skipif(bool(why_no_postgres()), reason=why_no_postgres() or "never")


@dataclass
class Engines:
    """Starts engines on one database, and reads what their phases noted."""

    url: str
    notes: Path

    async def start(self, worker: str, mode: str, *more: str) -> Process:
        command = [sys.executable, str(PROGRAM), self.url, str(self.notes), worker, mode, *more]
        return await asyncio.create_subprocess_exec(*command, stdout=PIPE)

    async def hanging(self, worker: str) -> Process:
        process = await self.start(worker, "hang")
        assert process.stdout is not None
        assert await process.stdout.readline() == b"hanging\n"
        return process

    @property
    def noted(self) -> list[str]:
        return self.notes.read_text().splitlines()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_postgres() as url:
        yield url


@pytest.fixture
def engines(server: str, tmp_path: Path) -> Iterator[Engines]:
    with new_database(server) as url:
        yield Engines(url, tmp_path / "notes")


async def test_a_dead_ones_job_goes_on_where_it_was(engines: Engines) -> None:
    one = await engines.hanging("one")
    one.kill()
    await one.communicate()
    two = await engines.start("two", "take-over", "one")
    out, _ = await two.communicate()
    assert out == b"[('demo', 'a-job')]\n[]\nsucceeded\n"
    assert engines.noted == ["one first", "one second", "two second", "two final"]
    # Started anew, the dead one leaves it alone; any service knows how it ended.
    again = await engines.start("one", "take-over", "two")
    assert (await again.communicate())[0] == b"[]\n[]\nsucceeded\n"
    assert len(engines.noted) == 4


async def test_one_that_only_seemed_dead_records_nothing_of_it(engines: Engines) -> None:
    one = await engines.hanging("one")
    one.send_signal(signal.SIGSTOP)
    two = await engines.start("two", "take-over", "one")
    out, _ = await two.communicate()
    assert out == b"[('demo', 'a-job')]\n[]\nsucceeded\n"
    # Awake, its phase is cancelled; it never runs the final one of a job that is another's.
    one.send_signal(signal.SIGCONT)
    cancels = await engines.start("three", "cancel")
    assert (await cancels.communicate())[0] == b"False\nsucceeded\n"
    assert (await one.communicate())[0] == b"succeeded\n"
    assert engines.noted == ["one first", "one second", "two second", "two final"]


async def test_a_job_is_cancelled_from_any_service(engines: Engines) -> None:
    one = await engines.hanging("one")
    three = await engines.start("three", "cancel")
    assert (await three.communicate())[0] == b"True\ncancelled\n"
    assert (await one.communicate())[0] == b"cancelled\n"
    assert engines.noted == ["one first", "one second", "one final"]
