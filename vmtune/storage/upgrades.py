"""The schema's revision: which one a database has, and bringing it to the newest.

The revisions are in vmtune.migrations, inside the package, so that a wheel has them.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from vmtune.errors import SchemaMismatch, SetupError
from vmtune.storage.database import make_engine, make_private
from vmtune.storage.failures import masked, parse_url, translated
from vmtune.storage.tables.core import VERSION_TABLE

if TYPE_CHECKING:
    from alembic.config import Config

COMMAND = "vmtune db upgrade"
RESTORING = "restoring"
"""Replaces the revision while a database is being restored: no service starts on it."""
COMPATIBLE = "works_with_previous"
"""The name in a revision that says whether services of the schema before it may continue after it:
it adds tables, indexes that are not unique, and columns that may be left out, and nothing else."""
LAST_WITHOUT_MARK = "0014"
"""The last revision that need not say so: no service may continue after it."""
_WAIT_S = 5.0
_SETTLING_S = 30
_UPGRADERS_LOCK = 0x766D7475706772  # "vmtupgr": the key of PostgreSQL's advisory lock


def migrations_folder() -> Path:
    """Where the revisions are."""
    return Path(str(resources.files("vmtune.migrations")))


def head_revision() -> str:
    """The revision that this vmtune works with."""
    return _known_revisions(migrations_folder())[-1]


def current_revision(url: str) -> str | None:
    """The revision that a database has; None where there is no schema, or no file, yet.

    :raise SetupError: it cannot be opened.
    """
    where = parse_url(url)
    with translated(where):
        if where.get_backend_name() == "sqlite" and not Path(str(where.database)).exists():
            return None
        engine = make_engine(where, wait_s=_WAIT_S)
        try:
            with engine.connect() as connection:
                return revision_of(connection)
        finally:
            engine.dispose()


def settled_revision(url: str) -> str | None:
    """As :func:`current_revision`, once no upgrade of it is under way: a server that lost its
    client may be committing still.

    :raise SetupError: it cannot be opened, or an upgrade is under way for longer than some seconds.
    """
    where = parse_url(url)
    if where.get_backend_name() == "sqlite":
        return current_revision(url)
    with translated(where):
        engine = make_engine(where, wait_s=_WAIT_S)
        try:
            with engine.begin() as connection:
                connection.execute(text(f"SET LOCAL lock_timeout = '{_SETTLING_S}s'"))
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_UPGRADERS_LOCK})"))
                return revision_of(connection)
        finally:
            engine.dispose()


def revision_of(connection: Connection) -> str | None:
    """The revision that the connected database has; None where there is no schema yet."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()  # noqa: S608 - a constant
    return str(found) if found is not None else None


def upgrade(url: str, folder: Path | None = None, to: str = "head") -> list[str]:
    """Bring a database to the newest revision; a SQLite file is created where missing.

    All in one transaction: it succeeds, or the database stays as it was.

    :param folder: where the revisions are, if not inside the package.
    :param to: an earlier revision, to restore data of that revision.
    :return: the revisions that were added, oldest first.
    :raise SchemaMismatch: the database is newer than this vmtune.
    :raise SetupError: it cannot be opened or written, or rows would be left that refer
        to nothing.
    """
    from alembic import command  # noqa: PLC0415 - slow to import, and seldom needed

    where = parse_url(url)
    folder = folder or migrations_folder()
    known = _known_revisions(folder)
    with translated(where):
        make_private(where)
        # SQLite alters a table by recreating it, and dropping the old one would delete
        # or refuse the rows that refer to it: so they are checked at the end instead.
        engine = make_engine(where, wait_s=_WAIT_S, foreign_keys=False)
        try:
            with engine.execution_options(vmtune_mode="durable").begin() as connection:
                if engine.dialect.name != "sqlite":
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({_UPGRADERS_LOCK})"))
                before = revision_of(connection)
                check_revision(before, known, masked(where), must_be_newest=False)
                config = _config(folder)
                config.attributes["connection"] = connection
                command.upgrade(config, to)
                if engine.dialect.name == "sqlite":
                    _check_references(connection, masked(where))
        finally:
            engine.dispose()
    if to != "head":
        known = known[: known.index(to) + 1]
    return known[known.index(before) + 1 :] if before else known


def check_revision(
    found: str | None, known: list[str], where: str, must_be_newest: bool = True
) -> None:
    """Refuse a database whose revision this vmtune cannot work with.

    :raise SchemaMismatch: naming the command that fixes it.
    """
    if found == RESTORING:
        raise SchemaMismatch(
            f"{where} is being restored, or its restore did not complete",
            field="database",
            remedy="wait for it, or restore it again with `vmtune db restore FILE --force`",
        )
    if found is not None and found not in known:
        raise SchemaMismatch(
            f"{where} has schema {found}, which a newer vmtune made; this one knows up to "
            f"{known[-1]}",
            field="database",
            remedy=f"install that vmtune; `{COMMAND}` cannot go back",
        )
    if must_be_newest and found != known[-1]:
        has = f"has schema {found}" if found else "has no schema yet"
        raise SchemaMismatch(
            f"{where} {has}; this vmtune works with {known[-1]}",
            field="database",
            remedy=f"run `{COMMAND}`",
        )


def known_revisions() -> list[str]:
    """The revisions that this vmtune knows, oldest first."""
    return _known_revisions(migrations_folder())


def pending_revisions(url: str, folder: Path | None = None) -> dict[str, bool]:
    """The revisions that :func:`upgrade` would add to a database that has a schema, oldest first,
    and of each whether services that work with the schema before it may continue after it (its
    :data:`COMPATIBLE`). Empty where there is no schema yet: nobody works with it.

    :raise SchemaMismatch: the database is newer than this vmtune, or being restored.
    :raise SetupError: it cannot be opened.
    """
    folder = folder or migrations_folder()
    before = current_revision(url)
    known = _known_revisions(folder)
    check_revision(before, known, masked(parse_url(url)), must_be_newest=False)
    if before is None:
        return {}
    marked = compatible_revisions(folder)
    return {revision: marked.get(revision) is True for revision in known[known.index(before) + 1 :]}


def compatible_revisions(folder: Path | None = None) -> dict[str, bool | None]:
    """What each revision says of itself by :data:`COMPATIBLE`; None where it says nothing."""
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - slow to import

    scripts = ScriptDirectory.from_config(_config(folder or migrations_folder()))
    return {
        script.revision: getattr(script.module, COMPATIBLE, None)
        for script in scripts.walk_revisions()
    }


def _known_revisions(folder: Path) -> list[str]:
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - slow to import

    scripts = ScriptDirectory.from_config(_config(folder)).walk_revisions()
    return [script.revision for script in scripts][::-1]


def _config(folder: Path) -> Config:
    from alembic.config import Config  # noqa: PLC0415 - slow to import

    config = Config()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    return config


def _check_references(connection: Connection, where: str) -> None:
    dangling = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchone()
    if dangling is not None:
        raise SetupError(
            f"{where}: the upgrade would leave rows in {dangling[0]} that refer to missing rows "
            f"in {dangling[2]}; nothing was changed",
            field="database",
            code="dangling_rows",
            remedy="restore the database from a backup, or report this with the versions of "
            "vmtune before and after",
        )
