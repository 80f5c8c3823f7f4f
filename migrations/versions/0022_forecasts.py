"""Forecasts, kept with their migrations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
works_with_previous = True

_COUNTED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the table; migrations of before have no forecasts."""
    op.create_table(
        "forecasts",
        sa.Column("number", _COUNTED, nullable=False),
        sa.Column("migration", _COUNTED, nullable=False),
        sa.Column("basis", _TEXT, nullable=False),
        sa.Column("made_at", _TIME, nullable=False),
        sa.Column("model", sa.Integer(), nullable=False),
        sa.Column("figures", sa.JSON(), nullable=False),
        sa.Column("inputs", sa.JSON(), nullable=False),
        sa.Column("happened", sa.JSON(), nullable=True),
        sa.Column("held_at", _TIME, nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_forecasts"),
        sa.ForeignKeyConstraint(
            ["migration"], ["migrations.number"], name="fk_forecasts_migration"
        ),
        sa.UniqueConstraint("migration", "basis", name="uq_forecasts_migration_basis"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_forecasts_held_at", "forecasts", ["held_at"])
