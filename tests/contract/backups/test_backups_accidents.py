"""Programs that lack, restores that break, files that are damaged or left behind."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import URL

from tests.support.stores.backed_up import (
    ACT,
    JOBS_TABLE,
    add_host,
    host_names,
    in_jobs,
    on_postgresql,
    url,
)  # fmt: skip
from tests.support.stores.postgres import (
    libpq_url,
    why_no_postgres,
)
from vmtune.errors import SchemaMismatch, SetupError
from vmtune.services.backup import postgresql as backup_postgresql
from vmtune.services.backup import sqlite as backup_sqlite
from vmtune.services.backup.backups import Databases, backup, restore
from vmtune.services.backup.check import check
from vmtune.storage import Store, current_revision, upgrade
from vmtune.storage.upgrades import RESTORING

NO_POSTGRES = why_no_postgres()


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
    with on_postgresql(server, tmp_path) as databases:
        backup(databases, tmp_path / "b")
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
            lambda: backup(databases, tmp_path / "c"),
            lambda: restore(databases, tmp_path / "b", ACT, force=True),
        ):
            with pytest.raises(SetupError) as refused:
                work()
            (problem,) = refused.value.problems
            assert (problem.code, "postgresql-client-" in problem.remedy) == (code, True)
        assert host_names(databases) == ["a"]
        assert not (tmp_path / "c").exists()


@pytest.mark.skipif(bool(NO_POSTGRES), reason=NO_POSTGRES)
def test_a_restore_that_fails_half_way_lets_no_service_start_and_can_be_repeated(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on_postgresql(server, tmp_path) as databases:
        backup(databases, tmp_path / "b")
        add_host(databases, "later")
        with monkeypatch.context() as broken:
            broken.setattr(backup_postgresql, "restore_jobs", _fail)
            with pytest.raises(SetupError) as failed:
                restore(databases, tmp_path / "b", ACT, force=True)
        (problem,) = failed.value.problems
        assert problem.code == "half_restored"
        assert current_revision(url(databases)) == RESTORING
        with pytest.raises(SchemaMismatch, match="did not complete"):
            Store.open(url(databases))
        assert [f.code for f in check(databases).findings] == ["half_restored"]
        undo = Path(problem.remedy.split("db restore ")[1].split(" ")[0])
        restore(databases, undo, ACT, force=True)
        assert host_names(databases) == ["a", "later"]


class _Killed(BaseException):
    """As kill -9 does: nothing is tidied up by the program."""


@pytest.mark.parametrize("there", [True, False, None], ids=["filled", "none", "damaged"])
def test_a_restore_on_sqlite_that_is_killed_between_its_files_lets_no_service_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool | None
) -> None:
    records, jobs = tmp_path / "vmtune.db", tmp_path / "jobs.db"
    databases = Databases.at(f"sqlite:///{records}", f"sqlite:///{jobs}", tmp_path / "kept")
    upgrade(url(databases))
    add_host(databases, "a")
    jobs.write_bytes(b"")
    backup(databases, tmp_path / "b")
    add_host(databases, "later")
    if not there:
        records.unlink()
    if there is None:
        records.write_bytes(b"SQLite format 3\0" + b"x" * 8000)
    put = backup_sqlite.put

    def killed(where: URL, copy: Path | None) -> None:
        put(where, copy)
        if where == databases.jobs:
            raise _Killed

    with monkeypatch.context() as broken:
        broken.setattr(backup_sqlite, "put", killed)
        with pytest.raises(_Killed):
            restore(databases, tmp_path / "b", ACT, force=True)
    assert current_revision(url(databases)) == RESTORING
    with pytest.raises(SchemaMismatch, match="did not complete"):
        Store.open(url(databases))
    restore(databases, tmp_path / "b", ACT)
    assert host_names(databases) == ["a"]


def _fail(*_: object) -> None:
    raise SetupError("the disk is full", field="database", remedy="free some space")


@pytest.mark.skipif(bool(NO_POSTGRES), reason=NO_POSTGRES)
def test_what_others_have_in_the_database_is_left_alone(server: str, tmp_path: Path) -> None:
    with on_postgresql(server, tmp_path) as databases:
        with psycopg.connect(libpq_url(url(databases)), autocommit=True) as connection:
            connection.execute(b"CREATE TABLE theirs (x int); INSERT INTO theirs VALUES (7)")
        backup(databases, tmp_path / "b")
        restore(databases, tmp_path / "b", ACT, force=True)
        with psycopg.connect(libpq_url(url(databases))) as connection:
            assert connection.execute(b"SELECT x FROM theirs").fetchall() == [(7,)]
        assert host_names(databases) == ["a"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_root_puts_back_is_the_services(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    databases = Databases.at(f"sqlite:///{folder}/r.db", f"sqlite:///{folder}/j.db", folder)
    upgrade(url(databases))
    in_jobs(databases, f"CREATE TABLE workflow_status {JOBS_TABLE}")
    backup(databases, tmp_path / "b")
    for file in folder.iterdir():
        file.unlink()
    os.chown(folder, 65534, 65534)
    restore(databases, tmp_path / "b", ACT)
    assert {(p.name, p.stat().st_uid) for p in folder.iterdir()} >= {
        ("r.db", 65534), ("j.db", 65534), ("j.db.lock", 65534)}  # fmt: skip


def test_a_damaged_file_is_kept_and_replaced(tmp_path: Path) -> None:
    databases = Databases.at(f"sqlite:///{tmp_path}/r.db", f"sqlite:///{tmp_path}/j.db", tmp_path)
    upgrade(url(databases))
    add_host(databases, "a")
    backup(databases, tmp_path / "b")
    (tmp_path / "r.db").write_bytes(b"no database" * 1000)
    assert [found.code for found in check(databases).findings] == ["damaged"]
    undo = restore(databases, tmp_path / "b", ACT, force=True).undo
    assert undo is not None
    assert (undo / "r.db").read_bytes().startswith(b"no database")
    assert host_names(databases) == ["a"]


def test_a_backup_of_a_damaged_file_is_refused(tmp_path: Path) -> None:
    databases = Databases.at(f"sqlite:///{tmp_path}/r.db", f"sqlite:///{tmp_path}/j.db", tmp_path)
    upgrade(url(databases))
    with closing(sqlite3.connect(tmp_path / "r.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray((tmp_path / "r.db").read_bytes())
    content[8192 : 8192 + 4096 * 6] = b"\xff" * 4096 * 6
    (tmp_path / "r.db").write_bytes(content)
    with pytest.raises(SetupError):
        backup(databases, tmp_path / "b")
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix != ".db") == []


def test_what_a_killed_backup_left_is_cleared_away(tmp_path: Path) -> None:
    databases = Databases.at(f"sqlite:///{tmp_path}/r.db", f"sqlite:///{tmp_path}/j.db", tmp_path)
    upgrade(url(databases))
    left = tmp_path / ".b.partial-999999999"
    left.mkdir()
    (left / "records.db").write_text("half")
    backup(databases, tmp_path / "b")
    assert not left.exists()
