"""Upgrading, and that what upgrades make is what the program works with."""

from __future__ import annotations

import contextlib

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, inspect, make_url, text

from tests.contract.store.conftest import NO_POSTGRES
from tests.support.stores.postgres import libpq_url
from vmtune.errors import SchemaMismatch
from vmtune.storage import Store, current_revision, head_revision, upgrade
from vmtune.storage.database import Database
from vmtune.storage.tables.core import VERSION_TABLE, Base
from vmtune.storage.upgrades import known_revisions


def test_an_empty_database_is_upgraded_once(new_url: str) -> None:
    assert current_revision(new_url) is None
    assert upgrade(new_url) == known_revisions()
    assert current_revision(new_url) == head_revision() == known_revisions()[-1]
    assert upgrade(new_url) == []
    Store.open(new_url).close()


def test_upgrades_make_the_tables_that_the_program_has(url: str) -> None:
    engine = create_engine(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "version_table": VERSION_TABLE,
                "compare_type": True,
                "compare_server_default": True,
            },
        )
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_every_constraint_has_its_name(url: str) -> None:
    """On both sides: a later revision can change only what it can name."""
    engine = create_engine(url)
    found = inspect(engine)
    for table in Base.metadata.sorted_tables:
        name = table.name
        numbered = table.dialect_options["sqlite"]["autoincrement"] and url.startswith("sqlite")
        if not numbered:  # there the key is part of its column, and has no name
            assert found.get_pk_constraint(name)["name"] == f"pk_{name}"
        in_database = {key["name"] for key in found.get_foreign_keys(name)}
        in_database |= {key["name"] for key in found.get_unique_constraints(name)}
        in_program = {c.name for c in table.constraints if c is not table.primary_key}
        assert in_database == in_program
        assert None not in in_program
    engine.dispose()


@pytest.mark.skipif(bool(NO_POSTGRES), reason=NO_POSTGRES)
def test_reading_begins_no_transaction_on_postgresql(postgres_url: str) -> None:
    """Two round trips less; and what has read holds nothing up that changes tables."""
    with contextlib.closing(Database(make_url(postgres_url))) as database:
        ways = (database.read(), database.write(), database.read())
        found: list[object] = []
        for way in ways:  # all of them on one connection, one after the other
            with way as session, psycopg.connect(libpq_url(postgres_url)) as other:
                pid = session.scalar(text("SELECT pg_backend_pid()"))
                query = "SELECT state FROM pg_stat_activity WHERE pid = %s"
                found += other.execute(query, [pid]).fetchone() or ()
        assert found == ["idle", "idle in transaction", "idle"]


@pytest.mark.skipif(bool(NO_POSTGRES), reason=NO_POSTGRES)
def test_postgresql_sorts_text_by_code_point(postgres_url: str) -> None:
    """As SQLite does; else it would sort, and so page, by the server's language."""
    engine = create_engine(postgres_url)
    with engine.connect() as connection:
        query = "SELECT collation_name FROM information_schema.columns WHERE data_type = 'text'"
        query += f" AND table_schema = 'public' AND table_name <> '{VERSION_TABLE}'"
        found = list(connection.execute(text(query)).scalars())
    engine.dispose()
    assert len(found) > 20
    assert set(found) == {"C"}


def test_a_store_without_schema_is_refused_with_the_command(new_url: str) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        Store.open(new_url)
    assert "`vmtune db upgrade`" in caught.value.problems[0].remedy


@pytest.mark.parametrize(
    ("revision", "message"),
    [("0000", "a newer vmtune made"), (None, "has no schema yet")],
)
def test_a_store_of_another_schema_is_refused(
    new_url: str, revision: str | None, message: str
) -> None:
    upgrade(new_url)
    engine = create_engine(new_url)
    with engine.begin() as connection:
        connection.execute(text(f"DELETE FROM {VERSION_TABLE}"))
        if revision:
            connection.execute(text(f"INSERT INTO {VERSION_TABLE} VALUES ('{revision}')"))
    engine.dispose()
    with pytest.raises(SchemaMismatch, match=message) as caught:
        Store.open(new_url)
    assert "vmtune db upgrade" in caught.value.problems[0].remedy
    if revision:
        with pytest.raises(SchemaMismatch, match="cannot go back"):
            upgrade(new_url)
        assert current_revision(new_url) == revision
