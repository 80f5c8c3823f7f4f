"""Runs revisions on the connection, and inside the transaction, of vmtune.storage.upgrades."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from vmtune.storage.tables.core import VERSION_TABLE, Base


def _run() -> None:
    connection = context.config.attributes.get("connection")
    assert isinstance(connection, Connection), "run `vmtune db upgrade` instead of alembic"
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        version_table=VERSION_TABLE,
        render_as_batch=True,
    )
    with context.begin_transaction():
        context.run_migrations()


_run()
