"""Webhooks, and what is to be sent to them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
works_with_previous = True

_COUNTED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_TIME = sa.DateTime(timezone=True)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=False)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "webhooks",
        sa.Column("id", sa.Uuid(), nullable=False),
        *map(_text, ("name", "url")),
        sa.Column("events", sa.JSON(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        *map(_text, ("secret", "old_secret")),
        sa.Column("old_until", _TIME, nullable=True),
        _text("created_by"),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_webhooks"),
        sa.UniqueConstraint("name", name="uq_webhooks_name"),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("number", _COUNTED, nullable=False),
        sa.Column("webhook", sa.Uuid(), nullable=False),
        *map(_text, ("message", "kind", "subject", "payload", "state")),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("next_at", _TIME, nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        _text("problem"),
        sa.Column("ended_at", _TIME, nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_webhook_deliveries"),
        sa.UniqueConstraint("webhook", "message", name="uq_webhook_deliveries_webhook_message"),
        sa.ForeignKeyConstraint(
            ["webhook"],
            ["webhooks.id"],
            name="fk_webhook_deliveries_webhook",
            ondelete="CASCADE",
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_webhook_deliveries_state_next_at", "webhook_deliveries", ["state", "next_at"]
    )
    op.create_index("ix_webhook_deliveries_ended_at", "webhook_deliveries", ["ended_at"])
    op.create_table(
        "webhook_outbox",
        _text("name"),
        sa.Column("event", _COUNTED, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_webhook_outbox"),
    )
