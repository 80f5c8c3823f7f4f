"""What is refused is said, and changes nothing."""

from __future__ import annotations

import os
import threading
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from tests.support.stores.backed_up import (
    ACT,
    add_host,
    host_names,
    url,
)  # fmt: skip
from tests.support.stores.postgres import (
    libpq_url,
    new_database,
    why_no_postgres,
)
from vmtune.errors import Conflict, InvalidInput, SchemaMismatch, SetupError, VmtuneError
from vmtune.jobs.file_lock import hold
from vmtune.services.backup import backups
from vmtune.services.backup import postgresql as backup_postgresql
from vmtune.services.backup.archive import MANIFEST
from vmtune.services.backup.backups import Databases, backup, restore
from vmtune.storage import Store, upgrade

NO_POSTGRES = why_no_postgres()
ONLY_SQLITE = pytest.mark.parametrize("new_databases", ["sqlite"], indirect=True)
"""For what happens before a database is opened."""


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
def test_a_spoiled_archive_changes_nothing(databases: Databases, tmp_path: Path, how: str) -> None:
    backup(databases, tmp_path / "b")
    add_host(databases, "later")
    spoiled = changed(tmp_path / "b", tmp_path / "spoiled", SPOILED[how])
    with pytest.raises(InvalidInput) as refused:
        restore(databases, spoiled, ACT, force=True)
    (problem,) = refused.value.problems
    assert (problem.field, problem.code in ("no_backup", "backup_format")) == ("file", True)
    assert problem.remedy
    assert host_names(databases) == ["a", "b", "later"]


@ONLY_SQLITE
def test_what_is_no_backup_is_refused(databases: Databases, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no zip")
    for file in (tmp_path / "text", tmp_path / "none", tmp_path):
        with pytest.raises(InvalidInput, match=str(file)):
            restore(databases, file, ACT, force=True)


@ONLY_SQLITE
def test_one_of_a_newer_vmtune_is_refused(databases: Databases, tmp_path: Path) -> None:
    made = backup(databases, tmp_path / "b")
    revision = f'"revision": "{made.revision}"'.encode()
    newer = changed(
        tmp_path / "b",
        tmp_path / "newer",
        lambda _, content: content.replace(revision, b'"revision": "9999"'),
    )
    with pytest.raises(SchemaMismatch, match="has schema 9999, which vmtune"):
        restore(databases, newer, ACT, force=True)


@ONLY_SQLITE
def test_a_file_that_is_there_is_not_overwritten(databases: Databases, tmp_path: Path) -> None:
    (tmp_path / "b").write_text("mine")
    with pytest.raises(InvalidInput, match="there is"):
        backup(databases, tmp_path / "b")
    assert (tmp_path / "b").read_text() == "mine"
    with pytest.raises(SetupError, match="No such file"):
        backup(databases, tmp_path / "nowhere" / "b")


def test_nothing_to_back_up_is_said(
    new_databases: Callable[[str], Databases], tmp_path: Path
) -> None:
    with pytest.raises(SchemaMismatch, match="nothing to back up"):
        backup(new_databases("empty"), tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_it_is_refused_while_a_service_serves(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup(databases, tmp_path / "b")
    with ExitStack() as stack:
        if databases.kind == "sqlite":
            lock = hold(Path(str(databases.jobs.database)))
            stack.callback(os.close, lock)
        else:
            stack.enter_context(Store.open(url(databases))).hosts.list()
        # Only here: a connection that has been closed takes a moment to leave.
        patched = stack.enter_context(monkeypatch.context())
        patched.setattr(backups, "_LEAVES_WITHIN_S", 0.2)
        with pytest.raises(VmtuneError) as refused:
            restore(databases, tmp_path / "b", ACT, force=True)
        assert "another vmtune service" in str(refused.value) or "connections" in str(refused.value)
    restore(databases, tmp_path / "b", ACT, force=True)


@pytest.mark.skipif(bool(NO_POSTGRES), reason=NO_POSTGRES)
def test_a_service_that_beats_is_seen_although_its_connections_are_not(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_database(server) as there:
        databases = Databases.at(there, there, tmp_path)
        upgrade(there)
        with Store.open(there) as store:
            store.services.join("live", "m", 1, "0")
        monkeypatch.setattr(backup_postgresql, "others_connected", lambda *_: 0)
        monkeypatch.setattr(backups, "HEARTBEAT_INTERVAL_S", 1.0)
        stop = threading.Event()

        def beat() -> None:
            while not stop.wait(0.02):
                with psycopg.connect(libpq_url(there), autocommit=True) as connection:
                    connection.execute(b"UPDATE services SET beats = beats + 1")

        backup(databases, tmp_path / "b")
        thread = threading.Thread(target=beat)
        thread.start()
        try:
            with pytest.raises(Conflict, match="the services live run"):
                restore(databases, tmp_path / "b", ACT, force=True)
        finally:
            stop.set()
            thread.join()
        restore(databases, tmp_path / "b", ACT, force=True)  # it only seems to run


@ONLY_SQLITE
@pytest.mark.parametrize("through_a_link", [False, True])
def test_it_is_refused_while_a_service_has_only_the_records(
    databases: Databases, tmp_path: Path, through_a_link: bool
) -> None:
    """Of a service with a state folder of its own, whose jobs are in another file."""
    backup(databases, tmp_path / "b")
    add_host(databases, "later")
    records = Path(str(databases.records.database))
    named = tmp_path / "link.db" if through_a_link else records
    if through_a_link:
        named.symlink_to(records)
    lock = hold(named)
    try:
        with pytest.raises(SetupError, match="another vmtune service uses it") as refused:
            restore(databases, tmp_path / "b", ACT, force=True)
        assert refused.value.problems[0].field == "database"
    finally:
        os.close(lock)
    assert "later" in host_names(databases)
    restore(databases, tmp_path / "b", ACT, force=True)
    assert "later" not in host_names(databases)


def test_one_of_the_other_kind_of_database_is_refused(databases: Databases, tmp_path: Path) -> None:
    backup(databases, tmp_path / "b")
    if databases.kind == "sqlite":
        other = Databases(make_url("postgresql+psycopg://nobody@/none"), databases.jobs, tmp_path)
    else:
        other = Databases.at(f"sqlite:///{tmp_path}/r.db", f"sqlite:///{tmp_path}/j.db", tmp_path)
    with pytest.raises(InvalidInput) as refused:
        restore(other, tmp_path / "b", ACT)
    assert refused.value.problems[0].code == "other_database"
