"""Backups of both kinds of database: taken while they are written, put back, undone."""

from __future__ import annotations

import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.simulated.fakes import VM
from tests.support.stores.backed_up import (
    ACT,
    JOBS_TABLE,
    NOW,
    add_host,
    host_names,
    in_jobs,
    job,
    unfinished,
    url,
)  # fmt: skip
from vmtune.errors import Conflict
from vmtune.model.access.scopes import FULL, Identity, Kind, Rights, Scope
from vmtune.model.access.tokens import Token
from vmtune.model.host.inventory import Host
from vmtune.model.migration.record import MigrationState
from vmtune.services.backup.archive import read
from vmtune.services.backup.backups import Databases, backup, restore
from vmtune.services.backup.check import check
from vmtune.storage import Store, current_revision, head_revision, upgrade
from vmtune.storage.repositories.audit_log import AuditFilter


@contextmanager
def written_to(databases: Databases) -> Iterator[list[int]]:
    """Somebody adds hosts all the time, and a job for each right after it."""
    stop = threading.Event()
    added: list[int] = []
    failed: list[BaseException] = []

    def write() -> None:
        try:
            with Store.open(url(databases)) as store:
                while not stop.is_set():
                    number = len(added)
                    store.hosts.add(Host(f"h{number}", "qemu+ssh://h/system", "", "", NOW))
                    job(databases, f"h{number}", "PENDING")
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
    databases: Databases, new_databases: Callable[[str], Databases], tmp_path: Path
) -> None:
    file = tmp_path / "b.vmtune-backup"
    made = backup(databases, file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read(file) == made
    assert (made.kind, made.revision, made.has_jobs) == (databases.kind, head_revision(), True)
    assert made.rows["hosts"] == 2
    other = new_databases("to")
    restored = restore(other, file, ACT)
    assert (restored.undo, restored.upgraded) == (None, ())
    with Store.open(url(databases)) as before, Store.open(url(other)) as after:
        assert [r.id for r in after.migrations.list().items] == [
            r.id for r in before.migrations.list().items
        ]
        done = after.migrations.list(state=MigrationState.COMPLETED).items[0]
        assert after.migrations.samples(done.id) == before.migrations.samples(done.id)
        assert after.audit.check().broken_at is None
        newest = after.audit.list(AuditFilter()).items[0]
        assert (newest.actor.id, newest.reason) == ("0", "the disk burnt")
        assert newest.subject.startswith(f"database restored from {file.name}, of 2")
        # Numbers go on where they were.
        begun = [s.migrations.begin(vm=VM, vm_name="v", source="a", destination="b")
                 for s in (before, after)]  # fmt: skip
        assert all(begun)
        older = [s.drift_scans.ask() for s in (before, after)]
        assert older[0] == older[1]
    assert [f.code for f in check(other).findings] == [f.code for f in check(databases).findings]
    assert not [left for left in tmp_path.rglob("*") if ".partial-" in left.name]


def test_both_are_copied_as_they_were_at_one_moment_while_they_are_written(
    databases: Databases, new_databases: Callable[[str], Databases], tmp_path: Path
) -> None:
    """A job is written after its host: so of the copies never the job alone is there."""
    with written_to(databases) as added:
        for number in range(3):
            seen = len(added)
            while len(added) < seen + 3:
                threading.Event().wait(0.005)
            backup(databases, tmp_path / f"{number}.vmtune-backup")
            assert len(added) >= seen + 3
    other = new_databases("to")
    restore(other, tmp_path / "2.vmtune-backup", ACT)
    hosts = {name for name in host_names(other) if name.startswith("h")}
    jobs = unfinished(other)
    assert jobs <= hosts
    assert len(hosts) - len(jobs) <= 1
    assert len(jobs) >= 3


def test_what_is_there_is_replaced_by_force_alone_and_can_be_put_back(
    databases: Databases, tmp_path: Path
) -> None:
    file = tmp_path / "b.vmtune-backup"
    backup(databases, file)
    add_host(databases, "later")
    job(databases, "later", "PENDING")
    with pytest.raises(Conflict) as refused:
        restore(databases, file, ACT)
    assert refused.value.problems[0].code == "not_empty"
    assert host_names(databases) == ["a", "b", "later"]
    undo = restore(databases, file, ACT, force=True).undo
    assert undo is not None
    assert stat.S_IMODE(undo.stat().st_mode) == 0o600
    assert host_names(databases) == ["a", "b"]
    assert "later" not in unfinished(databases)
    restore(databases, undo, ACT, force=True)
    assert host_names(databases) == ["a", "b", "later"]
    assert "later" in unfinished(databases)


def test_a_backup_of_no_job_leaves_none(
    new_databases: Callable[[str], Databases], tmp_path: Path
) -> None:
    made, other = new_databases("from"), new_databases("to")
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
    new_databases: Callable[[str], Databases], tmp_path: Path
) -> None:
    made, other = new_databases("from"), new_databases("to")
    upgrade(url(made), to="0008")
    manifest = backup(made, tmp_path / "b")
    assert manifest.revision == "0008"
    restored = restore(other, tmp_path / "b", ACT)
    assert restored.upgraded[-1] == head_revision() == current_revision(url(other))
    assert "audit_cuts" not in manifest.rows


def test_a_token_that_was_revoked_after_the_backup_stays_revoked(
    databases: Databases, new_databases: Callable[[str], Databases], tmp_path: Path
) -> None:
    file = tmp_path / "b.vmtune-backup"
    root = Identity(Kind.USER, "0", "root", FULL)
    read_only = Rights(frozenset({Scope.READ}))
    with Store.open(url(databases)) as store:
        for name in ("revokedlater", "staysvalid22"):
            store.tokens.add(Token(name, name, read_only, root, NOW), "hash")
        expires = datetime.now(UTC) + timedelta(hours=1)
        store.tokens.sign_in("s1", Identity(Kind.OIDC, "ada", "ada", read_only), "a", expires)
    backup(databases, file)
    with Store.open(url(databases)) as store:
        store.tokens.revoke("revokedlater")
        store.tokens.sign_out("s1")
    done = restore(databases, file, ACT, force=True)
    assert (done.revoked_again, done.knows_revoked) == (1, True)
    with Store.open(url(databases)) as store:
        assert store.tokens.get("revokedlater").revoked_at is not None
        assert store.tokens.get("staysvalid22").revoked_at is None
        assert store.tokens.session("s1") is None
    elsewhere = restore(new_databases("elsewhere"), file, ACT)
    assert not elsewhere.revoked_again
