"""Upgrades of a database that services use. The present program stands for the one before: the
revisions that follow are made here."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from sqlalchemy import create_engine, inspect, text

from tests.support.hosts.live import wait_for
from tests.support.hosts.sharing import SharingService
from tests.support.stores.backed_up import ACT, host_names, url
from vmtune.errors import Conflict, OutcomeUnknown, SetupError
from vmtune.services.backup import upgrading
from vmtune.services.backup.backups import Databases, restore
from vmtune.services.backup.upgrading import upgrade_in_use
from vmtune.storage import Store, current_revision, head_revision, upgrade
from vmtune.storage.upgrades import (
    LAST_WITHOUT_MARK,
    compatible_revisions,
    known_revisions,
    migrations_folder,
    settled_revision,
)

_NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "next"
down_revision = "{head}"
{mark}


def upgrade():
    {change}
"""
ADDS = 'op.add_column("hosts", sa.Column("rack", sa.Text(), nullable=True))'
REMOVES = 'op.drop_column("services", "machine")'
MARKED = "works_with_previous = True"


def next_schema(folder: Path, change: str = ADDS, mark: str = MARKED) -> Path:
    """The revisions, and one more."""
    to = folder / "next"
    shutil.copytree(migrations_folder(), to, ignore=shutil.ignore_patterns("__pycache__"))
    program = _NEXT.format(head=head_revision(), change=change, mark=mark)
    (to / "versions" / "next.py").write_text(program)
    return to


@contextmanager
def beating(databases: Databases) -> Iterator[Store]:
    """A service of the present schema that sends heartbeats."""
    ends = Event()
    with Store.open(url(databases)) as store:
        store.services.join("node1", "here", 1, "0.9")
        lease = store.lease
        assert lease is not None

        def beat() -> None:
            while not ends.wait(0.2):
                store.services.beat(lease)

        thread = Thread(target=beat)
        thread.start()
        try:
            yield store
        finally:
            ends.set()
            thread.join()


def shortly(_: float) -> None:
    """Ten heartbeats of :func:`beating`."""
    time.sleep(2)


def service_beats(databases: Databases) -> int:
    """How many heartbeats there were of the only service."""
    engine = create_engine(url(databases))
    with engine.connect() as connection:
        beats = int(connection.execute(text("SELECT beats FROM services")).scalar_one())
    engine.dispose()
    return beats


def only_postgresql(databases: Databases) -> None:
    if databases.kind == "sqlite":
        pytest.skip("SQLite has one service, which must have stopped: see the test of its lock")


def test_each_revision_says_whether_the_schema_before_it_may_go_on() -> None:
    marks = compatible_revisions()
    unmarked = [
        revision
        for revision in known_revisions()
        if revision > LAST_WITHOUT_MARK and marks[revision] is None
    ]
    assert not unmarked, "works_with_previous = True or False is missing"


def test_services_that_would_fail_refuse_the_upgrade(
    new_databases: Callable[[str], Databases], tmp_path: Path
) -> None:
    databases = new_databases("from")
    only_postgresql(databases)
    upgrade(url(databases))
    folder = next_schema(tmp_path, REMOVES, "works_with_previous = False")
    with beating(databases) as store:
        with pytest.raises(Conflict, match=r"node1 \(vmtune 0\.9\)") as caught:
            upgrade_in_use(databases, folder=folder, sleep=shortly)
        assert "stop" in caught.value.problems[0].remedy
        assert caught.value.problems[0].code == "services_running"
        assert current_revision(url(databases)) == head_revision()
        assert not list(databases.keep.glob("before-upgrade*"))
        store.services.stop()
    assert upgrade_in_use(databases, folder=folder).added == ("next",)


def test_a_revision_without_mark_is_not_compatible(
    new_databases: Callable[[str], Databases], tmp_path: Path
) -> None:
    databases = new_databases("from")
    only_postgresql(databases)
    upgrade(url(databases))
    with beating(databases), pytest.raises(Conflict):
        upgrade_in_use(databases, folder=next_schema(tmp_path, ADDS, ""), sleep=shortly)


def test_a_service_that_died_does_not_refuse_it(
    new_databases: Callable[[str], Databases], tmp_path: Path
) -> None:
    databases = new_databases("from")
    only_postgresql(databases)
    upgrade(url(databases))
    with Store.open(url(databases)) as store:
        store.services.join("node1", "here", 1, "0.9")
    folder = next_schema(tmp_path, ADDS, "works_with_previous = False")
    assert upgrade_in_use(databases, folder=folder, sleep=lambda _: None).added == ("next",)


def test_a_service_of_the_schema_before_goes_on_beside_a_compatible_one(
    new_databases: Callable[[str], Databases], tmp_path: Path
) -> None:
    databases = new_databases("from")
    only_postgresql(databases)
    short = Path(tempfile.mkdtemp(prefix="vt-"))  # sockets need short names
    service = SharingService(short / "one", "one", url(databases))
    try:
        service.start()
        removes = next_schema(tmp_path / "removes", REMOVES, "works_with_previous = False")
        with pytest.raises(Conflict, match="one"):
            upgrade_in_use(databases, folder=removes)
        assert upgrade_in_use(databases, folder=next_schema(tmp_path)).added == ("next",)
        beats = service_beats(databases)
        service.client.post("/profiles", {"name": "after", "values": {"multifd": True}})
        assert [profile["name"] for profile in service.client.items("/profiles")] == ["after"]
        wait_for(lambda: service_beats(databases) > beats, "a heartbeat after the upgrade")
        assert service.process is not None
        assert service.process.poll() is None
    finally:
        service.stop()
        shutil.rmtree(short, ignore_errors=True)


def test_on_sqlite_a_service_that_runs_refuses_it(
    new_databases: Callable[[str], Databases], tmp_path: Path
) -> None:
    from vmtune.services.backup import sqlite  # noqa: PLC0415 - of this test alone

    databases = new_databases("from")
    if databases.kind != "sqlite":
        pytest.skip("PostgreSQL has no such lock: heartbeats are looked at")
    upgrade(url(databases))
    folder = next_schema(tmp_path)
    with sqlite.held(databases.records, None), pytest.raises(SetupError, match="another vmtune"):
        upgrade_in_use(databases, folder=folder)
    assert upgrade_in_use(databases, folder=folder).added == ("next",)


def test_what_was_before_is_backed_up_and_can_be_restored(
    databases: Databases, new_databases: Callable[[str], Databases], tmp_path: Path
) -> None:
    done = upgrade_in_use(databases, folder=next_schema(tmp_path))
    assert done.backup is not None
    assert done.backup.parent == databases.keep
    other = new_databases("other")
    assert restore(other, done.backup, ACT).manifest.revision == head_revision()
    assert host_names(other) == ["a", "b"]
    assert upgrade_in_use(databases, folder=tmp_path / "next").backup is None  # nothing to add


def test_an_upgrade_that_fails_leaves_the_database_and_no_backup(
    databases: Databases, tmp_path: Path
) -> None:
    folder = next_schema(tmp_path, f"{ADDS}; raise RuntimeError('no')")
    with pytest.raises(RuntimeError, match="no"):
        upgrade_in_use(databases, folder=folder)
    assert current_revision(url(databases)) == head_revision()
    engine = create_engine(url(databases))
    assert "rack" not in {column["name"] for column in inspect(engine).get_columns("hosts")}
    engine.dispose()
    assert not list(databases.keep.glob("before-upgrade*"))


def raises_afterwards(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Upgrades are committed, and the answer is lost."""

    def lost(url: str, folder: Path | None) -> list[str]:
        upgrade(url, folder)
        raise error

    monkeypatch.setattr(upgrading, "upgrade", lost)


def test_an_upgrade_whose_answer_is_lost_is_looked_for(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raises_afterwards(monkeypatch, SetupError("the connection was lost"))
    done = upgrade_in_use(databases, folder=next_schema(tmp_path))
    assert done.added == ("next",)
    assert done.backup is not None
    assert done.backup.exists()


def test_an_upgrade_that_is_interrupted_after_its_commit_keeps_its_backup(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raises_afterwards(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        upgrade_in_use(databases, folder=next_schema(tmp_path))
    assert len(list(databases.keep.glob("before-upgrade*"))) == 1


def test_where_the_database_does_not_tell_the_backup_stays_and_is_named(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(_: str) -> str | None:
        raise SetupError("no answer")

    raises_afterwards(monkeypatch, SetupError("the connection was lost"))
    monkeypatch.setattr(upgrading, "settled_revision", silent)
    with pytest.raises(OutcomeUnknown, match="the connection was lost") as caught:
        upgrade_in_use(databases, folder=next_schema(tmp_path))
    (kept,) = databases.keep.glob("before-upgrade*")
    assert str(kept) in caught.value.problems[0].remedy


def test_a_connection_that_breaks_before_the_commit_leaves_no_backup(
    databases: Databases, tmp_path: Path
) -> None:
    only_postgresql(databases)
    ends = 'op.execute("SELECT pg_terminate_backend(pg_backend_pid())")'
    with pytest.raises(SetupError):
        upgrade_in_use(databases, folder=next_schema(tmp_path, f"{ADDS}; {ends}"))
    assert current_revision(url(databases)) == head_revision()
    assert not list(databases.keep.glob("before-upgrade*"))


def test_an_upgrade_under_way_is_waited_for(databases: Databases, tmp_path: Path) -> None:
    only_postgresql(databases)
    folder = next_schema(tmp_path, f'{ADDS}; op.execute("SELECT pg_sleep(1)")')
    begun = Thread(target=lambda: upgrade(url(databases), folder))
    begun.start()
    engine = create_engine(url(databases))

    def locked() -> bool:
        with engine.connect() as connection:
            return bool(connection.execute(text(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted "
                "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )).scalar())  # fmt: skip

    wait_for(locked, "the upgrade to begin")
    assert settled_revision(url(databases)) == "next"
    begun.join()
    engine.dispose()


def test_without_a_backup_nothing_is_upgraded_unless_asked(
    databases: Databases, tmp_path: Path
) -> None:
    folder = next_schema(tmp_path)
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    at = Databases(databases.records, databases.jobs, in_the_way)
    with pytest.raises(SetupError, match="no backup") as caught:
        upgrade_in_use(at, folder=folder)
    assert "--no-backup" in caught.value.problems[0].remedy
    assert upgrade_in_use(at, keep_backup=False, folder=folder).added == ("next",)


def what_breaks(folder: Path, revision: str, before: str, file: Path) -> list[str]:
    """What a revision takes from programs of the schema before it: tables and columns that are
    gone or changed, columns that must be given, rows that must be unique."""
    there = f"sqlite:///{file}"
    found = []
    for to in (before, revision):
        upgrade(there, folder, to)
        engine = create_engine(there)
        looked = inspect(engine)
        found.append(
            {
                table: (
                    {column["name"]: column for column in looked.get_columns(table)},
                    {index["name"] for index in looked.get_indexes(table) if index["unique"]}
                    | {str(one["name"]) for one in looked.get_unique_constraints(table)}
                    | {str(one["name"]) for one in looked.get_check_constraints(table)}
                    | {str(one["name"]) for one in looked.get_foreign_keys(table)},
                )
                for table in looked.get_table_names()
            }
        )
        engine.dispose()
    old, new = found
    wrong = [f"{table} is gone" for table in old if table not in new]
    for table in old.keys() & new.keys():
        (columns, rules), (columns_now, rules_now) = old[table], new[table]
        for name, column in columns.items():
            now = columns_now.get(name)
            if now is None:
                wrong.append(f"{table}.{name} is gone")
            elif (str(now["type"]), now["nullable"]) != (str(column["type"]), column["nullable"]):
                wrong.append(f"{table}.{name} is changed")
        wrong += [
            f"{table}.{name} must be given"
            for name, column in columns_now.items()
            if name not in columns and not column["nullable"] and column["default"] is None
        ]
        wrong += [f"{table} has the new rule {name}" for name in sorted(rules_now - rules, key=str)]
    return wrong


def test_what_is_marked_compatible_is(tmp_path: Path) -> None:
    known, marks = known_revisions(), compatible_revisions()
    for before, revision in itertools.pairwise(known):
        if marks[revision]:
            file = tmp_path / f"{revision}.db"
            assert what_breaks(migrations_folder(), revision, before, file) == []


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (ADDS, []),
        (REMOVES, ["services.machine is gone"]),
        ('op.drop_table("drift_scans")', ["drift_scans is gone"]),
        (
            'op.create_index("ix_names", "hosts", ["uri"], unique=True)',
            ["hosts has the new rule ix_names"],
        ),
    ],
)
def test_what_a_revision_breaks_is_found(change: str, wrong: list[str], tmp_path: Path) -> None:
    folder = next_schema(tmp_path, change)
    assert what_breaks(folder, "next", head_revision(), tmp_path / "vmtune.db") == wrong
