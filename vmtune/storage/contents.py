"""The database as a whole, for backup, restore and check: its tables and their numbers of rows.
Works on a given connection, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, Table, func, inspect, select, text

from vmtune.storage.tables.core import VERSION_TABLE, Base

_FUNCTIONS = ("audit_only_grows", "audit_cuts_are_entries")


def tables() -> tuple[Table, ...]:
    """Every table, those first that others refer to."""
    return tuple(Base.metadata.sorted_tables)


def rows(connection: Connection) -> Mapping[str, int]:
    """How many rows each table has, of those that there are."""
    there = set(inspect(connection).get_table_names())
    return {
        table.name: connection.scalar(select(func.count()).select_from(table)) or 0
        for table in tables()
        if table.name in there
    }


def remove(connection: Connection) -> None:
    """Remove all tables, whichever revision made them, and what PostgreSQL has for them."""
    there = set(inspect(connection).get_table_names())
    for name in _named(there):
        cascade = " CASCADE" if connection.dialect.name == "postgresql" else ""
        connection.execute(text(f'DROP TABLE "{name}"{cascade}'))
    if connection.dialect.name == "postgresql":
        for function in _FUNCTIONS:
            connection.execute(text(f"DROP FUNCTION IF EXISTS {function}() CASCADE"))


def set_revision(connection: Connection, revision: str) -> None:
    """Note which revision the database has."""
    connection.execute(
        text(f"UPDATE {VERSION_TABLE} SET version_num = :revision"),  # noqa: S608 - a constant
        {"revision": revision},
    )


def _named(there: Iterable[str]) -> list[str]:
    known = [table.name for table in reversed(tables())]
    return [name for name in (*known, VERSION_TABLE) if name in set(there)]
