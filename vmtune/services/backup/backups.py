"""Backs up the databases while services use them, and restores a backup while none does."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import URL, create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from vmtune import __version__
from vmtune.errors import Conflict, InvalidInput, SchemaMismatch, SetupError, VmtuneError
from vmtune.model.access.audit import Act, Outcome
from vmtune.model.cluster import ServiceState
from vmtune.services.backup import archive, postgresql, sqlite
from vmtune.services.backup.archive import Manifest
from vmtune.services.backup.postgresql import PostgresCopy
from vmtune.services.backup.sqlite import SqliteCopy
from vmtune.services.cluster.cluster import HEARTBEAT_INTERVAL_S
from vmtune.storage import Store, current_revision, upgrade
from vmtune.storage import contents as whole
from vmtune.storage.failures import masked, parse_url, translated
from vmtune.storage.upgrades import RESTORING, check_revision, known_revisions

_RESTORE = Path("/var/tmp/vmtune-restore")  # noqa: S108 - a private folder next to it is made
_LEAVES_WITHIN_S = 3.0
DAMAGED = "database_damaged"


@dataclass(frozen=True, slots=True)
class Databases:
    """Where the databases are.

    :param keep: the folder for a copy of what a restore replaces.
    """

    records: URL
    jobs: URL
    keep: Path

    @classmethod
    def at(cls, records: str, jobs: str, keep: Path) -> Databases:
        """By their URLs.

        :raise SetupError: one is none that vmtune can use.
        """
        return cls(parse_url(records), parse_url(jobs), keep)

    @property
    def kind(self) -> str:
        """Which database the records are in."""
        return self.records.get_backend_name()

    @property
    def one(self) -> bool:
        """Whether both are in one PostgreSQL database."""
        return self.kind == "postgresql" and self.records == self.jobs


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore.

    :param undo: a copy of the previous data; None where there was none.
    :param upgraded: the revisions that were added, where the backup is of an older vmtune.
    :param revoked_again: tokens that were valid in the backup and revoked since.
    :param knows_revoked: whether the previous data told which those are.
    """

    manifest: Manifest
    undo: Path | None
    upgraded: tuple[str, ...]
    revoked_again: int = 0
    knows_revoked: bool = False


def backup(databases: Databases, to: Path) -> Manifest:
    """Copy both databases into one file, as they are at one moment. Services continue meanwhile.

    :raise InvalidInput: the file exists.
    :raise SetupError: a database or the file cannot be used; no file is left.
    """
    to = to.absolute()
    if to.exists():
        raise InvalidInput(
            f"there is {to} already", field="file", code="file_exists", remedy="name another file"
        )
    revision = _revision(databases)
    if revision is None or revision == RESTORING:
        raise SchemaMismatch(
            f"{masked(databases.records)} has nothing to back up",
            field="database",
            remedy="see that it is the right one: --state-dir, --database-url",
        )
    check_revision(revision, known_revisions(), masked(databases.records), must_be_newest=False)
    with archive.temporary_folder(to) as folder:
        rows = _copy_both(databases, folder)
        members = sorted(folder.iterdir())
        manifest = Manifest(
            __version__,
            databases.kind,
            revision,
            datetime.now(UTC),
            rows,
            tuple(archive.measured(member) for member in members),
        )
        archive.write(to, manifest, folder)
    return manifest


def _copy_both(databases: Databases, folder: Path) -> Mapping[str, int]:
    with ExitStack() as stack:
        records = _copier(databases.records, jobs=False)
        jobs = _copier(databases.jobs, jobs=True)
        for each in (records, jobs):
            stack.callback(each.close)
        both = [records] if jobs.missing else [records, jobs]
        if len(both) > 1 and not databases.one:
            for each in both:
                each.hold()
        records.look()
        if jobs in both:
            if (
                isinstance(jobs, PostgresCopy)
                and isinstance(records, PostgresCopy)
                and databases.one
            ):
                jobs.look_as(records)
            else:
                jobs.look()
        for each in both:
            each.let_go()
        for name, each in zip(("records", "jobs"), both, strict=False):
            file = folder / (name + _ending(each.url))
            each.copy(file)
            wrong = sqlite.sound(file) if isinstance(each, SqliteCopy) else ""
            if wrong:
                raise SetupError(
                    f"{masked(each.url)} is damaged: {wrong}",
                    field="database",
                    code=DAMAGED,
                    remedy="restore it from an earlier backup",
                )
        if isinstance(records, PostgresCopy):
            return records.rows()
        return sqlite.rows_of(folder / f"records{sqlite.ENDING}")


def _copier(url: URL, *, jobs: bool) -> SqliteCopy | PostgresCopy:
    return SqliteCopy(url) if _is_sqlite(url) else PostgresCopy(url, jobs=jobs)


def restore(databases: Databases, file: Path, act: Act, *, force: bool = False) -> Restored:
    """Restore a backup, check it, and upgrade it to this vmtune's schema.

    :param act: who does it, for the restored audit log.
    :param force: also if a database is not empty; a copy of it is kept.
    :raise InvalidInput: the file is no backup, or of the other kind of database.
    :raise SchemaMismatch: it was made by a newer vmtune.
    :raise Conflict: a service runs, or the database is not empty.
    :raise SetupError: a database or the disk cannot be used.
    """
    manifest = archive.read(file)
    _check(databases, file, manifest)
    revoked = _revoked(databases.records)
    if databases.kind == "sqlite":
        restored = _restore_sqlite(databases, file, manifest, force=force)
    else:
        restored = _restore_postgresql(databases, file, manifest, force=force)
    with Store.open(databases.records.render_as_string(hide_password=False)) as store:
        made = manifest.made_at.isoformat(timespec="seconds")
        subject = f"database restored from {file.name}, of {made}"
        store.audit.add(act, Outcome.DONE, subject, None, ())
        again = store.tokens.revoke_again(revoked or ())
    return replace(restored, revoked_again=again, knows_revoked=revoked is not None)


def _revoked(records: URL) -> Sequence[str] | None:
    """The ids of the tokens that are revoked in what a restore replaces: what was revoked after the
    backup must not work again. None where it cannot be read, as on a new machine."""
    if _is_sqlite(records) and not Path(str(records.database)).exists():
        return None
    engine = create_engine(records)
    try:
        with engine.connect() as connection:
            return list(
                connection.scalars(text("SELECT id FROM tokens WHERE revoked_at IS NOT NULL"))
            )
    except SQLAlchemyError:
        return None
    finally:
        engine.dispose()


def _check(databases: Databases, file: Path, manifest: Manifest) -> None:
    """:raise VmtuneError: the backup cannot be put there."""
    if manifest.revision not in known_revisions():
        raise SchemaMismatch(
            f"{file} has schema {manifest.revision}, which vmtune {manifest.vmtune} made; this "
            f"one knows up to {known_revisions()[-1]}",
            field="file",
            remedy=f"install vmtune {manifest.vmtune} or a later one",
        )
    named = {Path(member.name).stem: Path(member.name).suffix for member in manifest.members}
    for name, url in (("records", databases.records), ("jobs", databases.jobs)):
        if named.get(name, _ending(url)) != _ending(url):
            raise InvalidInput(
                f"the {name} in {file} are of {manifest.kind}, and {masked(url)} is not",
                field="file",
                code="other_database",
                remedy="name a database of that kind with --database-url or --state-dir",
            )


def _ending(url: URL) -> str:
    return sqlite.ENDING if _is_sqlite(url) else postgresql.ENDING


def _is_sqlite(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def _restore_sqlite(
    databases: Databases, file: Path, manifest: Manifest, *, force: bool
) -> Restored:
    records = Path(str(databases.records.database)).absolute()
    with ExitStack() as stack:
        stack.enter_context(_unserved(databases))
        folder = stack.enter_context(archive.temporary_folder(records))
        archive.unpack(file, manifest, folder)
        copy = folder / f"records{sqlite.ENDING}"
        wrong = sqlite.sound(copy)
        if wrong or sqlite.rows_of(copy) != manifest.rows:
            raise _differs(file, wrong)
        upgraded = upgrade(f"sqlite:///{copy}")
        sqlite.fold(copy)
        undo = _make_room(databases, force=force)
        try:
            # Two files cannot be replaced at once: until both are, no service starts on them.
            sqlite.mark(databases.records, RESTORING, folder)
            _put_jobs(databases, folder, manifest, stack)
            sqlite.put(databases.records, copy)
        except VmtuneError as error:
            raise _half_way(error, undo) from error
    return Restored(manifest, undo, tuple(upgraded))


def _restore_postgresql(
    databases: Databases, file: Path, manifest: Manifest, *, force: bool
) -> Restored:
    url = databases.records.render_as_string(hide_password=False)
    with ExitStack() as stack:
        stack.enter_context(_unserved(databases))
        folder = stack.enter_context(archive.temporary_folder(_RESTORE))
        archive.unpack(file, manifest, folder)
        engine = stack.enter_context(postgresql.opened(databases.records))
        postgresql.check_programs(engine, databases.records)
        undo = _make_room(databases, force=force)
        try:
            with engine.begin() as connection:
                whole.remove(connection)
            upgrade(url, to=manifest.revision)
            with engine.begin() as connection:
                whole.set_revision(connection, RESTORING)
            postgresql.restore_rows(databases.records, folder / f"records{postgresql.ENDING}")
            _put_jobs(databases, folder, manifest, stack)
            with engine.begin() as connection:
                if dict(whole.rows(connection)) != dict(manifest.rows):
                    raise _differs(file, "")
                whole.set_revision(connection, manifest.revision)
        except VmtuneError as error:
            raise _half_way(error, undo) from error
        upgraded = upgrade(url)
    return Restored(manifest, undo, tuple(upgraded))


def _put_jobs(databases: Databases, folder: Path, manifest: Manifest, stack: ExitStack) -> None:
    dump = folder / f"jobs{_ending(databases.jobs)}" if manifest.has_jobs else None
    if not _is_sqlite(databases.jobs):
        postgresql.restore_jobs(databases.jobs, dump)
        return
    jobs = Path(str(databases.jobs.database)).absolute()
    if dump is not None and dump.stat().st_dev != jobs.parent.stat().st_dev:
        near = stack.enter_context(archive.temporary_folder(jobs)) / dump.name
        shutil.copyfile(dump, near)
        near.chmod(0o600)
        dump = near
    sqlite.put(databases.jobs, dump)


@contextmanager
def _unserved(databases: Databases) -> Iterator[None]:
    """Within the block no service runs.

    :raise VmtuneError: one does.
    """
    with ExitStack() as stack:
        both = (databases.records, databases.jobs)
        stack.enter_context(sqlite.held(*(url if _is_sqlite(url) else None for url in both)))
        for url in {url for url in both if not _is_sqlite(url)}:
            _refuse_served(url)
        yield


def _refuse_served(url: URL) -> None:
    """:raise Conflict: a service, or another command of vmtune, uses the database."""
    until_s = time.monotonic() + _LEAVES_WITHIN_S
    with postgresql.opened(url) as engine:
        while connected := postgresql.others_connected(engine, url):
            if time.monotonic() > until_s:
                raise _served(f"{connected} connections of vmtune to {masked(url)} are open")
            time.sleep(0.2)
    revision = current_revision(url.render_as_string(hide_password=False))
    if revision != known_revisions()[-1]:
        return  # no service of this version starts on it
    with Store.open(url.render_as_string(hide_password=False)) as store:
        before = {one.name: one.beats for one in store.services.all() if _runs(one.state)}
        if before:
            time.sleep(2 * HEARTBEAT_INTERVAL_S)
        after = {one.name: one.beats for one in store.services.all()}
    live = [name for name, beats in before.items() if after.get(name) != beats]
    if live:
        raise _served(f"the services {', '.join(live)} run on {masked(url)}")


def _runs(state: ServiceState) -> bool:
    return state is ServiceState.RUNNING


def _served(what: str) -> Conflict:
    return Conflict(
        what,
        field="database",
        code="service_running",
        remedy="stop every vmtune service that uses it (systemctl stop vmtune), then try again",
    )


def _make_room(databases: Databases, *, force: bool) -> Path | None:
    """A copy of the present data; None where there is none.
    :raise Conflict: there is some, and *force* is not given.
    """
    try:
        is_empty, damaged = _is_empty(databases), False
    except SetupError:
        if not _is_sqlite(databases.records):
            raise
        is_empty, damaged = False, True
    if is_empty:
        return None
    if not force:
        raise Conflict(
            f"{masked(databases.records)} is not empty",
            field="database",
            code="not_empty",
            remedy="name an empty one; or replace it with --force, which keeps a copy of it",
        )
    name = f"before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"
    databases.keep.mkdir(parents=True, exist_ok=True)
    if damaged:
        return _keep_files(databases, databases.keep / name)
    undo = databases.keep / f"{name}.vmtune-backup"
    try:
        backup(databases, undo)
    except SetupError as error:
        if error.problems[0].code != DAMAGED or not _is_sqlite(databases.records):
            raise
        return _keep_files(databases, databases.keep / name)
    return undo


def _keep_files(databases: Databases, folder: Path) -> Path:
    """Move away files that are too damaged to be backed up."""
    folder.mkdir(mode=0o700)
    for url in (databases.records, databases.jobs):
        if _is_sqlite(url):
            file = Path(str(url.database)).absolute()
            for one in (file, *(file.with_name(file.name + end) for end in ("-wal", "-shm"))):
                if one.exists():
                    shutil.copy2(one, folder / one.name)
    return folder


def _is_empty(databases: Databases) -> bool:
    """Whether no data would be lost.
    :raise SetupError: that cannot be determined.
    """
    if _revision(databases) in (None, RESTORING):  # an earlier restore kept a copy
        return True
    if _is_sqlite(databases.records):
        with translated(databases.records):
            return not any(sqlite.rows_of(Path(str(databases.records.database))).values())
    with postgresql.opened(databases.records) as engine, engine.connect() as connection:
        return not any(whole.rows(connection).values())


def _revision(databases: Databases) -> str | None:
    return current_revision(databases.records.render_as_string(hide_password=False))


def _differs(file: Path, wrong: str) -> InvalidInput:
    why = wrong or "its tables have other numbers of rows than it says"
    return InvalidInput(
        f"{file} cannot be restored: {why}",
        field="file",
        code="no_backup",
        remedy="name another backup",
    )


def _half_way(error: VmtuneError, undo: Path | None) -> SetupError:
    first = error.problems[0]
    back = f"restore the previous data with `vmtune db restore {undo} --force`" if undo else ""
    return SetupError(
        f"the restore did not complete, and no service starts on the database: {first.message}",
        field=first.field,
        code="half_restored",
        remedy="; or ".join(filter(None, (first.remedy, back))),
    )
