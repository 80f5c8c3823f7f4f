"""Each failure is made to happen: nothing here pretends."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import event, make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from tests.support.stores.postgres import (
    libpq_url,
    new_database,
    running_postgres,
    why_no_postgres,
)
from vmtune.errors import SchemaMismatch, SetupError
from vmtune.model.host.inventory import EventTopic, Host
from vmtune.model.plan.outcome import ApplicationState
from vmtune.storage import Store, current_revision, database, upgrade
from vmtune.storage.database import Database
from vmtune.storage.failures import masked, parse_url, translated

pytestmark = pytest.mark.integration

HOST = Host("a", "qemu:///system", "", "", datetime(2026, 1, 1, tzinfo=UTC))


def code(caught: pytest.ExceptionInfo[SetupError]) -> str:
    (problem,) = caught.value.problems
    assert problem.remedy
    assert problem.field == "database"
    assert "\n" not in str(caught.value)
    return problem.code


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("sqlite:////var/lib/x.db", "sqlite:////var/lib/x.db"),
        ("sqlite+pysqlite:///x.db", "sqlite:///x.db"),
        ("postgresql://u:pw@h/d", "postgresql+psycopg://u:***@h/d"),
        ("postgres://h/d", "postgresql+psycopg://h/d"),
        ("postgresql+asyncpg://h/d?password=pw", "postgresql+psycopg://h/d?password=%2A%2A%2A"),
    ],
)
def test_urls_that_are_accepted(given: str, expected: str) -> None:
    assert masked(parse_url(given)) == expected


@pytest.mark.parametrize(
    "given",
    ["", "x", "/var/lib/x.db", "secret:pw@host", "mysql://u:pw@h/d", "sqlite://",
     "sqlite:///:memory:", "sqlite:///file:x?mode=memory&uri=true", "postgresql://h:pw/d",
     "nosuch+driver://h"],
)  # fmt: skip
@pytest.mark.parametrize("call", [Store.open, upgrade, current_revision])
def test_urls_that_are_refused(given: str, call: object) -> None:
    assert callable(call)
    with pytest.raises(SetupError) as caught:
        call(given)
    assert code(caught) == "database_url"
    assert "pw" not in str(caught.value)


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="No such file or directory") as caught:
        upgrade(f"sqlite:///{tmp_path}/nope/vmtune.db")
    assert code(caught) == "database_cannot_open"


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    for call in (Store.open, upgrade):
        with pytest.raises(SetupError, match="Is a directory") as caught:
            call(f"sqlite:///{tmp_path}")
        assert code(caught) == "database_cannot_open"


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"no database" * 1000)
    for call in (Store.open, upgrade, current_revision):
        with pytest.raises(SetupError, match=r"x\.db") as caught:
            call(f"sqlite:///{tmp_path}/x.db")
        assert code(caught) == "database_damaged"


def test_opening_does_not_create_a_database(tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatch, match="`vmtune db upgrade`"):
        Store.open(f"sqlite:///{tmp_path}/x.db")
    assert current_revision(f"sqlite:///{tmp_path}/x.db") is None
    assert list(tmp_path.iterdir()) == []


def test_only_the_owner_can_read_the_files(file: Path, url: str) -> None:
    file.chmod(0o644)  # as a restored backup may be
    before = os.umask(0)
    try:
        with Store.open(url) as store:
            store.hosts.add(HOST)
            modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in file.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("vmtune.db", "vmtune.db-wal", "vmtune.db-shm"), 0o600)


def test_a_new_file_is_private_from_the_start(file: Path) -> None:
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_another_program_has_it_locked(file: Path, url: str) -> None:
    other = sqlite3.connect(file, isolation_level=None)
    with Store.open(url, wait_s=0.05) as store:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(SetupError) as caught:
            store.hosts.add(HOST)
        assert code(caught) == "database_locked"
        assert store.hosts.list().items == ()  # reading goes on
        other.execute("ROLLBACK")
        store.hosts.add(HOST)
    other.close()


def test_another_thread_has_it_locked_for_too_long(url: str) -> None:
    database = Database(parse_url(url), wait_s=0.05)
    inside, done = threading.Event(), threading.Event()

    def hold() -> None:
        with database.write():
            inside.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    with pytest.raises(SetupError) as caught, database.write():
        pass
    assert code(caught) == "database_locked"
    done.set()
    thread.join()
    with database.write():
        pass
    database.close()


@pytest.mark.parametrize(
    ("pragma", "expected"),
    [
        ("PRAGMA max_page_count = 1", "database_full"),
        ("PRAGMA query_only = 1", "database_read_only"),
    ],
)
def test_it_cannot_be_written(url: str, pragma: str, expected: str) -> None:
    with Store.open(url) as store:
        event.listen(
            store._database._engine, "begin", lambda c: c.exec_driver_sql(pragma), insert=True
        )
        with pytest.raises(SetupError) as caught:
            store.events.append(EventTopic.VM, "x", {"text": "x" * 200_000})
        assert code(caught) == expected


def test_a_change_that_fails_half_way_changes_nothing(url: str) -> None:
    with Store.open(url) as store:
        store.hosts.add(HOST)
    database = Database(parse_url(url))

    def change() -> None:
        with database.write() as session:
            session.connection().exec_driver_sql("DELETE FROM hosts")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change()
    database.close()
    with Store.open(url) as store:
        assert store.hosts.get("a") == HOST


def test_durable_writes_wait_for_the_disk(url: str) -> None:
    full, normal = 2, 1  # as SQLite numbers them
    database = Database(parse_url(url))
    for durable, expected in ((True, full), (False, normal), (True, full)):
        with database.write(durable=durable) as session:
            level = session.connection().exec_driver_sql("PRAGMA synchronous").scalar()
        assert level == expected
    with database.read() as session:
        connection = session.connection()
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
    database.close()


def test_an_application_that_ends_with_the_machine_does_not_wait_for_the_disk(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[bool] = []
    write = Database.write

    def noted(
        it: Database, *, durable: bool = True, progress: bool = False
    ) -> AbstractContextManager[Session]:
        waits.append(durable)
        return write(it, durable=durable, progress=progress)

    with Store.open(url) as store:
        monkeypatch.setattr(Database, "write", noted)
        for number, ends in enumerate((True, False)):
            begun = store.applications.begin(
                UUID(int=number), "a", "p", 1, {}, False, [], ends_with_machine=ends
            )
            state = ApplicationState.APPLIED
            store.applications.finish(begun.id, state, ends_with_machine=ends)
        store.events.append(EventTopic.APPLICATION, "x", {}, durable=True)
    assert waits == [False, False, True, True, True]


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    url = f"postgresql://me:s3cret@/vmtune?host={tmp_path}"
    for call in (Store.open, upgrade, current_revision):
        with pytest.raises(SetupError, match="cannot be reached") as caught:
            call(url)
        assert code(caught) == "database_unreachable"
        assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("url", ["postgresql://me:s3cret@h/d", "postgresql://h/d?password=s3cret"])
def test_a_password_in_what_the_database_says_is_not_repeated(url: str) -> None:
    def fail() -> None:
        with translated(parse_url(url)):
            said = psycopg.OperationalError("no user me with s3cret\nDETAIL: s3cret")
            raise OperationalError("SELECT 1", {}, said)

    with pytest.raises(SetupError, match=r"no user me with \*\*\*\)") as caught:
        fail()
    assert "s3cret" not in str(caught.value)


@pytest.mark.skipif(bool(why_no_postgres()), reason=why_no_postgres())
def test_a_server_is_asked_whether_it_is_there_after_a_rest_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []
    with running_postgres() as server, new_database(server) as url:
        upgrade(url)
        with Store.open(url) as store:
            dialect = store._database._engine.dialect
            monkeypatch.setattr(dialect, "do_ping", asked.append)
            monkeypatch.setattr(database, "_RESTS_S", 3600.0)
            for _ in range(3):
                store.hosts.list()
            assert asked == []
            monkeypatch.setattr(database, "_RESTS_S", 0.0)
            store.hosts.list()
            assert len(asked) == 1


@pytest.mark.skipif(bool(why_no_postgres()), reason=why_no_postgres())
def test_postgresql_failures() -> None:
    with running_postgres() as server, new_database(server) as url:
        nowhere = make_url(url).set(database="nowhere").render_as_string(hide_password=False)
        with pytest.raises(SetupError, match="nowhere") as caught:
            Store.open(nowhere)
        assert code(caught) == "database_unreachable"

        with pytest.raises(SchemaMismatch, match=r"has no schema yet.*`vmtune db upgrade`"):
            Store.open(url)
        upgrade(url)
        with Store.open(url, wait_s=0.2) as store, psycopg.connect(libpq_url(url)) as other:
            other.execute("LOCK TABLE hosts IN EXCLUSIVE MODE")
            with pytest.raises(SetupError) as caught:
                store.hosts.add(HOST)
            assert code(caught) == "database_locked"
            other.rollback()

            name = make_url(url).database
            other.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
            other.commit()
            store._database._engine.dispose()  # the setting is for new connections
            with pytest.raises(SetupError) as caught:
                store.hosts.add(HOST)
            assert code(caught) == "database_read_only"
            other.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only".encode())
            other.commit()
            store._database._engine.dispose()

            store.hosts.add(HOST)
            # The server ends all its sessions, as at a restart, and says so once they have
            # ended: the next call connects anew.
            other.execute(
                "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity "
                "WHERE application_name = 'vmtune'"
            )
            assert store.hosts.get("a") == HOST
