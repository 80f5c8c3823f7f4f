"""Samples of the disks that migrations copy."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
works_with_previous = True


def upgrade() -> None:
    """Add the table; earlier migrations have none."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "disk_chunks",
        sa.Column("migration", number, nullable=False, autoincrement=False),
        sa.Column("position", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("last_at_ms", number, nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["migration"], ["migrations.number"], name=op.f("fk_disk_chunks_migration")
        ),
        sa.PrimaryKeyConstraint("migration", "position", name=op.f("pk_disk_chunks")),
    )
