"""What runs during a migration: a revision's convergence steps, and what the reaper and the
steps did.

Rows from before get no steps; SQLite's tables are made anew for it, since a column that may not
be null has to have its values first.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_COUNTED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the columns, and the table of the reaper's rounds."""
    _add_lists("profile_revisions", "steps")
    _add_lists("migrations", "steps", "step_records", numbered=True)
    op.add_column("migrations", sa.Column("reaper", sa.JSON(), nullable=True))
    op.create_table(
        "reaper_chunks",
        sa.Column("migration", _COUNTED, nullable=False, autoincrement=False),
        sa.Column("position", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("last_at_ms", _COUNTED, nullable=False),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("migration", "position", name="pk_reaper_chunks"),
        sa.ForeignKeyConstraint(
            ["migration"], ["migrations.number"], name="fk_reaper_chunks_migration"
        ),
    )


def _add_lists(table: str, *names: str, numbered: bool = False) -> None:
    """Columns of JSON lists that are empty in the rows that are there.

    :param numbered: SQLite is never to give a deleted row's number again; it does not say so
        itself when it is asked what the table is like.
    """
    for name in names:
        op.add_column(table, sa.Column(name, sa.JSON(), nullable=True))
        op.execute(sa.text(f"UPDATE {table} SET {name} = '[]'"))  # noqa: S608 - names of ours
    options = {"sqlite_autoincrement": True} if numbered else {}
    with op.batch_alter_table(table, table_kwargs=options) as batch:
        for name in names:
            batch.alter_column(name, existing_type=sa.JSON(), nullable=False)
