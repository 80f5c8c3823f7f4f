"""What is particular to the durable engine: its database, dbos, the process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from dbos import _dbos

from vmtune.errors import SetupError
from vmtune.jobs.base import JobStatus
from vmtune.jobs.database import open_database
from vmtune.jobs.durable import DurableEngine

pytestmark = pytest.mark.integration


async def nothing(job_id: str) -> None:
    pass


def engine_at(url: str, final: Callable[[str], Awaitable[None]] = nothing) -> DurableEngine:
    engine = DurableEngine(url)
    engine.register("demo", [("final", final)])
    return engine


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "jobs.sqlite3"


def not_a_database(file: Path) -> None:
    file.write_bytes(b"this is no database, it only looks like one from afar" * 100)


def a_folder(file: Path) -> None:
    file.mkdir()


def a_table_in_the_way(file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE workflow_status (wrong int)")


def schema_gone(file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE dbos_migrations (version INTEGER NOT NULL PRIMARY KEY)")
        connection.execute("INSERT INTO dbos_migrations VALUES (100000)")
        connection.commit()


@pytest.mark.parametrize("prepare", [not_a_database, a_folder, a_table_in_the_way, schema_gone])
async def test_a_file_that_cannot_be_opened_is_named(
    file: Path, prepare: Callable[[Path], None], capfd: pytest.CaptureFixture[str]
) -> None:
    prepare(file)
    engine = engine_at(f"sqlite:///{file}")
    with pytest.raises(SetupError) as caught:
        await engine.start()
    (problem,) = caught.value.problems
    assert problem.field == "jobs_database"
    assert str(file) in problem.message
    assert "\n" not in problem.message
    assert capfd.readouterr() == ("", "")
    # Nothing is held: another one can start in this process.
    other = engine_at(f"sqlite:///{file}.other")
    await other.start()
    await other.stop()


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("sqlite:////no/such/folder/jobs.sqlite3", "No such file or directory"),
        ("sqlite://", "need a file"),
        ("sqlite:///:memory:", "need a file"),
        ("/var/lib/jobs.sqlite3", "not a database URL"),
        ("postgresql//user:secret@host", "not a database URL"),
        ("mysql://user:secret@host/db", "mysql is not supported"),
        ("postgresql://user:secret@/db?host=/no/such/folder", "No such file or directory"),
    ],
)
async def test_a_url_that_cannot_be_used(url: str, reason: str) -> None:
    with pytest.raises(SetupError, match=reason) as caught:
        await engine_at(url).start()
    assert "secret" not in str(caught.value)


async def test_a_database_that_fails_later_is_named(file: Path) -> None:
    engine = engine_at(f"sqlite:///{file}")
    await engine.start()
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("DROP TABLE workflow_status")
    with pytest.raises(SetupError, match=f"{file}: no such table"):
        await engine.state("job-1")
    with pytest.raises(SetupError, match=f"{file}: no such table"):
        await engine.submit("demo", "job-1")
    await engine.stop()


async def test_the_file_is_private_and_in_wal_mode(file: Path) -> None:
    engine = engine_at(f"sqlite:///{file}")
    await engine.start()
    await engine.stop()
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    with contextlib.closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_a_file_serves_one_service_at_a_time(file: Path) -> None:
    holder = open_database(f"sqlite:///{file}")
    with pytest.raises(SetupError, match="another vmtune service uses it"):
        await engine_at(f"sqlite:///{file}").start()
    holder.close()
    engine = engine_at(f"sqlite:///{file}")
    await engine.start()
    await engine.stop()
    open_database(f"sqlite:///{file}").close()  # stop lets go of it


async def test_one_engine_at_a_time_in_a_process(file: Path) -> None:
    engine = engine_at(f"sqlite:///{file}")
    await engine.start()
    with pytest.raises(RuntimeError, match="started already"):
        await engine_at(f"sqlite:///{file}.other").start()
    await engine.submit("demo", "job-1")
    assert (await engine.wait("job-1")).status is JobStatus.SUCCEEDED
    await engine.stop()


async def test_the_loop_of_the_service_keeps_its_thread_pool(file: Path) -> None:
    # dbos gives the loops that it works on its own pool, and shuts it down.
    engine = engine_at(f"sqlite:///{file}")
    await engine.start()
    await engine.submit("demo", "job-1")
    await engine.wait("job-1")
    await engine.stop()
    assert await asyncio.to_thread(lambda: "works") == "works"


async def test_the_console_stays_quiet(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    reached = asyncio.Event()

    async def wait(job_id: str) -> None:
        reached.set()
        await asyncio.Event().wait()

    engine = engine_at(f"sqlite:///{file}", wait)
    await engine.start()
    await engine.submit("demo", "job-1")
    await reached.wait()
    await engine.stop()
    assert capfd.readouterr() == ("", "")


async def test_what_is_stored_is_json(file: Path) -> None:
    engine = engine_at(f"sqlite:///{file}")
    await engine.start()
    await engine.submit("demo", "job-1")
    await engine.wait("job-1")
    await engine.stop()
    with contextlib.closing(sqlite3.connect(file)) as connection:
        text = "\n".join(connection.iterdump())
    assert '"positionalArgs":["demo","job-1",["final"]]' in text
    assert '{"status":"succeeded","error":""}' in text
    assert "py_pickle" not in text  # dbos's name for its default format


def test_the_interface_does_not_load_dbos() -> None:
    code = (
        "import sys, vmtune.jobs.base, vmtune.testing.inline_jobs; sys.exit('dbos' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_nothing_asks_each_second_for_what_is_not_used(file: Path) -> None:
    engine = engine_at(f"sqlite:///{file}")
    await engine.start()
    try:
        assert "dbos-background-jobs" not in {thread.name for thread in threading.enumerate()}
        # As dbos has them for whoever else uses it in this process.
        assert _dbos.background_jobs_thread.__module__ == "dbos._workflow_commands"
    finally:
        await engine.stop()
