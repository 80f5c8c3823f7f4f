"""Requests that were sent with an Idempotency-Key, and their answers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
works_with_previous = True

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_TIME = sa.DateTime(timezone=True)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=False)


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "idempotency_keys",
        *map(_text, ("caller_kind", "caller", "key", "fingerprint", "action", "begins")),
        sa.Column("begun_at", _TIME, nullable=False),
        _text("holder"),
        sa.Column("subject", _TEXT, nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("headers", sa.JSON(), nullable=True),
        sa.Column("body", _TEXT, nullable=True),
        sa.PrimaryKeyConstraint("caller_kind", "caller", "key", name="pk_idempotency_keys"),
    )
    op.create_index("ix_idempotency_keys_begun_at", "idempotency_keys", ["begun_at"])
