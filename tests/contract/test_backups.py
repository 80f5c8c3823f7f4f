"""Backups of both kinds of database: taken while they are written, put back, undone."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from tests.data.store.make_dump import fill
from tests.support.fakes import VM
from tests.support.postgres import (
    libpq_url,
    new_database,
    postgres_server,
    why_no_postgres,
)
from vmtune.domain.access import Identity, Kind
from vmtune.domain.audit import Act
from vmtune.domain.inventory import Host
from vmtune.domain.migration import MigrationState
from vmtune.errors import Conflict, InvalidInput, SchemaMismatch, SetupError, VmtuneError
from vmtune.jobs.database import hold
from vmtune.services import backup_postgresql, backups, database_check
from vmtune.services.backup_archive import MANIFEST, read
from vmtune.services.backups import Place, backup, restore
from vmtune.services.database_check import check
from vmtune.store import Store, current_revision, head_revision, upgrade
from vmtune.store.audit_log import AuditFilter
from vmtune.store.upgrading import RESTORING

NO_POSTGRES = why_no_postgres()
ACT = Act(Identity(Kind.USER, "0", "root"), "vmtune db", "db_restore", "the disk burnt")
NOW = datetime(2026, 11, 21, 4, 30, tzinfo=UTC)
ONLY_SQLITE = pytest.mark.parametrize("new_place", ["sqlite"], indirect=True)
"""For what happens before a database is opened."""
JOBS_TABLE = "(workflow_uuid TEXT PRIMARY KEY, status TEXT, name TEXT)"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as running:
        yield running.url


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgresql", marks=pytest.mark.skipif(bool(NO_POSTGRES), reason=NO_POSTGRES)),
    ]
)
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Place]]:
    """Makes a place without databases, by a name."""
    with ExitStack() as stack:

        def make(name: str) -> Place:
            folder = tmp_path / name
            folder.mkdir(mode=0o700)
            if request.param == "sqlite":
                both = (f"sqlite:///{folder}/vmtune.db", f"sqlite:///{folder}/jobs.db")
                return Place.at(*both, folder)
            url = stack.enter_context(new_database(request.getfixturevalue("server")))
            return Place.at(url, url, folder)

        yield make


@pytest.fixture
def place(new_place: Callable[[str], Place]) -> Place:
    """Databases with something in each table, and a job."""
    made = new_place("from")
    upgrade(url(made))
    with Store.open(url(made), now=lambda: NOW) as store:
        fill(store)
        store.fleet.stop()
    in_jobs(made, f"CREATE TABLE workflow_status {JOBS_TABLE}")
    job(made, "ended", "SUCCESS")
    return made


def url(place: Place) -> str:
    return place.records.render_as_string(hide_password=False)


def in_jobs(place: Place, statement: str) -> None:
    if place.kind == "sqlite":
        with closing(sqlite3.connect(str(place.jobs.database))) as connection:
            connection.execute(statement)
            connection.commit()
        Path(str(place.jobs.database)).chmod(0o600)  # as the service makes it
        return
    with psycopg.connect(libpq_url(str(url(place))), autocommit=True) as connection:
        connection.execute(b"CREATE SCHEMA IF NOT EXISTS dbos")
        connection.execute(b"SET search_path = dbos")
        connection.execute(statement.encode())


def job(place: Place, id: str, status: str) -> None:
    in_jobs(place, f"INSERT INTO workflow_status VALUES ('{id}', '{status}', 'vmtune.job')")


def unfinished(place: Place) -> frozenset[str]:
    with closing(database_check._Jobs(place.jobs)) as jobs:
        return jobs.unfinished()


def host_names(place: Place) -> list[str]:
    with Store.open(url(place)) as store:
        return [host.name for host in store.hosts.list().items]


def add_host(place: Place, name: str) -> None:
    with Store.open(url(place)) as store:
        store.hosts.add(Host(name, f"qemu+ssh://{name}/system", "", "", NOW))


@contextmanager
def written_to(place: Place) -> Iterator[list[int]]:
    """Somebody adds hosts all the time, and a job for each right after it."""
    stop = threading.Event()
    added: list[int] = []
    failed: list[BaseException] = []

    def write() -> None:
        try:
            with Store.open(url(place)) as store:
                while not stop.is_set():
                    number = len(added)
                    store.hosts.add(Host(f"h{number}", "qemu+ssh://h/system", "", "", NOW))
                    job(place, f"h{number}", "PENDING")
                    added.append(number)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield added
    finally:
        stop.set()
        thread.join()
        assert not failed, failed


def test_a_backup_is_put_back_as_it_was(
    place: Place, new_place: Callable[[str], Place], tmp_path: Path
) -> None:
    file = tmp_path / "b.vmtune-backup"
    made = backup(place, file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read(file) == made
    assert (made.kind, made.revision, made.has_jobs) == (place.kind, head_revision(), True)
    assert made.rows["hosts"] == 2
    other = new_place("to")
    restored = restore(other, file, ACT)
    assert (restored.undo, restored.upgraded) == (None, ())
    with Store.open(url(place)) as before, Store.open(url(other)) as after:
        assert [r.id for r in after.migrations.list().items] == [
            r.id for r in before.migrations.list().items
        ]
        done = after.migrations.list(state=MigrationState.COMPLETED).items[0]
        assert after.migrations.samples(done.id) == before.migrations.samples(done.id)
        assert after.audit.check().broken_at is None
        newest = after.audit.list(AuditFilter()).items[0]
        assert (newest.actor.id, newest.reason) == ("0", "the disk burnt")
        assert newest.subject.startswith(f"database put back from {file.name}, of 2")
        # Numbers go on where they were.
        begun = [s.migrations.begin(vm=VM, vm_name="v", source="a", destination="b")
                 for s in (before, after)]  # fmt: skip
        assert all(begun)
        older = [s.drift_scans.ask() for s in (before, after)]
        assert older[0] == older[1]
    assert [f.code for f in check(other).findings] == [f.code for f in check(place).findings]
    assert not [left for left in tmp_path.rglob("*") if ".partial-" in left.name]


def test_both_are_copied_as_they_were_at_one_moment_while_they_are_written(
    place: Place, new_place: Callable[[str], Place], tmp_path: Path
) -> None:
    """A job is written after its host: so of the copies never the job alone is there."""
    with written_to(place) as added:
        for number in range(3):
            seen = len(added)
            while len(added) < seen + 3:
                threading.Event().wait(0.005)
            backup(place, tmp_path / f"{number}.vmtune-backup")
            assert len(added) >= seen + 3
    other = new_place("to")
    restore(other, tmp_path / "2.vmtune-backup", ACT)
    hosts = {name for name in host_names(other) if name.startswith("h")}
    jobs = unfinished(other)
    assert jobs <= hosts
    assert len(hosts) - len(jobs) <= 1
    assert len(jobs) >= 3


def test_what_is_there_is_replaced_by_force_alone_and_can_be_put_back(
    place: Place, tmp_path: Path
) -> None:
    file = tmp_path / "b.vmtune-backup"
    backup(place, file)
    add_host(place, "later")
    job(place, "later", "PENDING")
    with pytest.raises(Conflict) as refused:
        restore(place, file, ACT)
    assert refused.value.problems[0].code == "not_empty"
    assert host_names(place) == ["a", "b", "later"]
    undo = restore(place, file, ACT, force=True).undo
    assert undo is not None
    assert stat.S_IMODE(undo.stat().st_mode) == 0o600
    assert host_names(place) == ["a", "b"]
    assert "later" not in unfinished(place)
    restore(place, undo, ACT, force=True)
    assert host_names(place) == ["a", "b", "later"]
    assert "later" in unfinished(place)


def test_a_backup_of_no_job_leaves_none(new_place: Callable[[str], Place], tmp_path: Path) -> None:
    made, other = new_place("from"), new_place("to")
    upgrade(url(made))
    assert not backup(made, tmp_path / "b").has_jobs
    upgrade(url(other))
    in_jobs(other, f"CREATE TABLE workflow_status {JOBS_TABLE}")
    job(other, "x", "PENDING")
    add_host(other, "x")
    restore(other, tmp_path / "b", ACT, force=True)
    assert unfinished(other) == frozenset()
    assert host_names(other) == []


def test_an_older_one_is_brought_to_this_schema(
    new_place: Callable[[str], Place], tmp_path: Path
) -> None:
    made, other = new_place("from"), new_place("to")
    upgrade(url(made), to="0008")
    manifest = backup(made, tmp_path / "b")
    assert manifest.revision == "0008"
    restored = restore(other, tmp_path / "b", ACT)
    assert restored.upgraded[-1] == head_revision() == current_revision(url(other))
    assert "audit_cuts" not in manifest.rows


def changed(file: Path, to: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """A copy of an archive with some members changed, or left out."""
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(to, "w") as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return to


def flip(name: str, content: bytes) -> bytes:
    if name == MANIFEST:
        return content
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


SPOILED: dict[str, Callable[[str, bytes], bytes | None]] = {
    "a bit is wrong": flip,
    "a member is missing": lambda name, content: None if name.startswith("records") else content,
    "it says nothing": lambda name, content: None if name == MANIFEST else content,
    "of a later format": lambda name, content: content.replace(b'"format": 1', b'"format": 2'),
    "another name": lambda name, content: content.replace(b"jobs.", b"../x."),
    "no JSON": lambda name, content: content[:-9] if name == MANIFEST else content,
}


@ONLY_SQLITE
@pytest.mark.parametrize("how", SPOILED)
def test_a_spoiled_archive_changes_nothing(place: Place, tmp_path: Path, how: str) -> None:
    backup(place, tmp_path / "b")
    add_host(place, "later")
    spoiled = changed(tmp_path / "b", tmp_path / "spoiled", SPOILED[how])
    with pytest.raises(InvalidInput) as refused:
        restore(place, spoiled, ACT, force=True)
    (problem,) = refused.value.problems
    assert (problem.field, problem.code in ("no_backup", "backup_format")) == ("file", True)
    assert problem.remedy
    assert host_names(place) == ["a", "b", "later"]


@ONLY_SQLITE
def test_what_is_no_backup_is_refused(place: Place, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no zip")
    for file in (tmp_path / "text", tmp_path / "none", tmp_path):
        with pytest.raises(InvalidInput, match=str(file)):
            restore(place, file, ACT, force=True)


@ONLY_SQLITE
def test_one_of_a_newer_vmtune_is_refused(place: Place, tmp_path: Path) -> None:
    made = backup(place, tmp_path / "b")
    revision = f'"revision": "{made.revision}"'.encode()
    newer = changed(
        tmp_path / "b",
        tmp_path / "newer",
        lambda _, content: content.replace(revision, b'"revision": "9999"'),
    )
    with pytest.raises(SchemaMismatch, match="has schema 9999, which vmtune"):
        restore(place, newer, ACT, force=True)


@ONLY_SQLITE
def test_a_file_that_is_there_is_not_overwritten(place: Place, tmp_path: Path) -> None:
    (tmp_path / "b").write_text("mine")
    with pytest.raises(InvalidInput, match="there is"):
        backup(place, tmp_path / "b")
    assert (tmp_path / "b").read_text() == "mine"
    with pytest.raises(SetupError, match="No such file"):
        backup(place, tmp_path / "nowhere" / "b")


def test_nothing_to_back_up_is_said(new_place: Callable[[str], Place], tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatch, match="nothing to back up"):
        backup(new_place("empty"), tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_it_is_refused_while_a_service_serves(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backups, "_LEAVES_WITHIN_S", 0.2)
    backup(place, tmp_path / "b")
    with ExitStack() as stack:
        if place.kind == "sqlite":
            lock = hold(Path(str(place.jobs.database)))
            stack.callback(os.close, lock)
        else:
            stack.enter_context(Store.open(url(place))).hosts.list()
        with pytest.raises(VmtuneError) as refused:
            restore(place, tmp_path / "b", ACT, force=True)
        assert "another vmtune service" in str(refused.value) or "connections" in str(refused.value)
    restore(place, tmp_path / "b", ACT, force=True)


@pytest.mark.skipif(bool(NO_POSTGRES), reason=NO_POSTGRES)
def test_a_service_that_beats_is_seen_although_its_connections_are_not(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_database(server) as there:
        place = Place.at(there, there, tmp_path)
        upgrade(there)
        with Store.open(there) as store:
            store.fleet.join("live", "m", 1, "0")
        monkeypatch.setattr(backup_postgresql, "others_connected", lambda *_: 0)
        monkeypatch.setattr(backups, "BEAT_S", 0.2)
        stop = threading.Event()

        def beat() -> None:
            while not stop.wait(0.02):
                with psycopg.connect(libpq_url(there), autocommit=True) as connection:
                    connection.execute(b"UPDATE services SET beats = beats + 1")

        backup(place, tmp_path / "b")
        thread = threading.Thread(target=beat)
        thread.start()
        try:
            with pytest.raises(Conflict, match="the services live run"):
                restore(place, tmp_path / "b", ACT, force=True)
        finally:
            stop.set()
            thread.join()
        restore(place, tmp_path / "b", ACT, force=True)  # it only seems to run


def test_one_of_the_other_kind_of_database_is_refused(place: Place, tmp_path: Path) -> None:
    backup(place, tmp_path / "b")
    if place.kind == "sqlite":
        other = Place(make_url("postgresql+psycopg://nobody@/none"), place.jobs, tmp_path)
    else:
        other = Place.at(f"sqlite:///{tmp_path}/r.db", f"sqlite:///{tmp_path}/j.db", tmp_path)
    with pytest.raises(InvalidInput) as refused:
        restore(other, tmp_path / "b", ACT)
    assert refused.value.problems[0].code == "other_database"


@pytest.mark.skipif(bool(NO_POSTGRES), reason=NO_POSTGRES)
@pytest.mark.parametrize(
    ("version", "code"), [(None, "program_missing"), ("9.6.1", "program_too_old")]
)
def test_what_postgresqls_programs_lack_is_said_before_anything_is_changed(
    server: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str | None,
    code: str,
) -> None:
    with new_database(server) as there:
        place = Place.at(there, there, tmp_path)
        upgrade(there)
        add_host(place, "a")
        backup(place, tmp_path / "b")
        monkeypatch.setattr(backup_postgresql, "_FOLDERS", tmp_path / "none")
        programs = tmp_path / "bin"
        programs.mkdir()
        if version:
            for name in ("pg_dump", "pg_restore"):
                program = programs / name
                program.write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version}'\n")
                program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}:/usr/sbin:/sbin" if version else str(programs))
        for work in (
            lambda: backup(place, tmp_path / "c"),
            lambda: restore(place, tmp_path / "b", ACT, force=True),
        ):
            with pytest.raises(SetupError) as refused:
                work()
            (problem,) = refused.value.problems
            assert (problem.code, "postgresql-client-" in problem.remedy) == (code, True)
        assert host_names(place) == ["a"]
        assert not (tmp_path / "c").exists()


@pytest.mark.skipif(bool(NO_POSTGRES), reason=NO_POSTGRES)
def test_a_restore_that_fails_half_way_lets_no_service_start_and_can_be_repeated(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_database(server) as there:
        place = Place.at(there, there, tmp_path)
        upgrade(there)
        add_host(place, "a")
        backup(place, tmp_path / "b")
        add_host(place, "later")
        with monkeypatch.context() as broken:
            broken.setattr(backup_postgresql, "restore_jobs", _fail)
            with pytest.raises(SetupError) as failed:
                restore(place, tmp_path / "b", ACT, force=True)
        (problem,) = failed.value.problems
        assert problem.code == "half_restored"
        assert current_revision(there) == RESTORING
        with pytest.raises(SchemaMismatch, match="did not come to its end"):
            Store.open(there)
        assert [f.code for f in check(place).findings] == ["half_restored"]
        undo = Path(problem.remedy.split("restore ")[1].split(" ")[0])
        restore(place, undo, ACT, force=True)
        assert host_names(place) == ["a", "later"]


def _fail(*_: object) -> None:
    raise SetupError("the disk is full", field="database", remedy="free some space")


@pytest.mark.skipif(bool(NO_POSTGRES), reason=NO_POSTGRES)
def test_what_others_have_in_the_database_is_left_alone(server: str, tmp_path: Path) -> None:
    with new_database(server) as there:
        place = Place.at(there, there, tmp_path)
        upgrade(there)
        add_host(place, "a")
        with psycopg.connect(libpq_url(there), autocommit=True) as connection:
            connection.execute(b"CREATE TABLE theirs (x int); INSERT INTO theirs VALUES (7)")
        backup(place, tmp_path / "b")
        restore(place, tmp_path / "b", ACT, force=True)
        with psycopg.connect(libpq_url(there)) as connection:
            assert connection.execute(b"SELECT x FROM theirs").fetchall() == [(7,)]
        assert host_names(place) == ["a"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_root_puts_back_is_the_services(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    place = Place.at(f"sqlite:///{folder}/r.db", f"sqlite:///{folder}/j.db", folder)
    upgrade(url(place))
    in_jobs(place, f"CREATE TABLE workflow_status {JOBS_TABLE}")
    backup(place, tmp_path / "b")
    for file in folder.iterdir():
        file.unlink()
    os.chown(folder, 65534, 65534)
    restore(place, tmp_path / "b", ACT)
    assert {(p.name, p.stat().st_uid) for p in folder.iterdir()} >= {
        ("r.db", 65534), ("j.db", 65534), ("j.db.lock", 65534)}  # fmt: skip


def test_a_damaged_file_is_kept_and_replaced(tmp_path: Path) -> None:
    place = Place.at(f"sqlite:///{tmp_path}/r.db", f"sqlite:///{tmp_path}/j.db", tmp_path)
    upgrade(url(place))
    add_host(place, "a")
    backup(place, tmp_path / "b")
    (tmp_path / "r.db").write_bytes(b"no database" * 1000)
    assert [found.code for found in check(place).findings] == ["damaged"]
    undo = restore(place, tmp_path / "b", ACT, force=True).undo
    assert undo is not None
    assert (undo / "r.db").read_bytes().startswith(b"no database")
    assert host_names(place) == ["a"]


def test_a_backup_of_a_damaged_file_is_refused(tmp_path: Path) -> None:
    place = Place.at(f"sqlite:///{tmp_path}/r.db", f"sqlite:///{tmp_path}/j.db", tmp_path)
    upgrade(url(place))
    with closing(sqlite3.connect(tmp_path / "r.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray((tmp_path / "r.db").read_bytes())
    content[8192 : 8192 + 4096 * 6] = b"\xff" * 4096 * 6
    (tmp_path / "r.db").write_bytes(content)
    with pytest.raises(SetupError):
        backup(place, tmp_path / "b")
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix != ".db") == []


def test_what_a_killed_backup_left_is_cleared_away(tmp_path: Path) -> None:
    place = Place.at(f"sqlite:///{tmp_path}/r.db", f"sqlite:///{tmp_path}/j.db", tmp_path)
    upgrade(url(place))
    left = tmp_path / ".b.partial-999999999"
    left.mkdir()
    (left / "records.db").write_text("half")
    backup(place, tmp_path / "b")
    assert not left.exists()
