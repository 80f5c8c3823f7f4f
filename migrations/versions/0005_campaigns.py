"""Campaigns, and the noise floors that they measured."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_COUNTED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_TIME = sa.DateTime(timezone=True)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=False)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "campaigns",
        sa.Column("number", _COUNTED, nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        _text("name"),
        sa.Column("campaign", sa.JSON(), nullable=False),
        sa.Column("forecast", sa.JSON(), nullable=False),
        *map(_text, ("state", "reason", "host")),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("ended_at", _TIME, nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_campaigns"),
        sa.UniqueConstraint("id", name="uq_campaigns_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_campaigns_name_number", "campaigns", ["name", "number"])
    op.create_index("ix_campaigns_state", "campaigns", ["state"])
    op.create_table(
        "noise_floors",
        *map(_text, ("environment", "scenario", "metric", "scale", "design")),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("effect", sa.Double(), nullable=False),
        sa.Column("observed", sa.Double(), nullable=False),
        sa.Column("campaign", sa.Uuid(), nullable=False),
        sa.Column("made_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("environment", "scenario", "metric", name="pk_noise_floors"),
        sa.ForeignKeyConstraint(
            ["environment"], ["environments.fingerprint"], name="fk_noise_floors_environment"
        ),
    )
