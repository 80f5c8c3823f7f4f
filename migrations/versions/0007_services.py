"""Services that share a database: heartbeats, owners of hosts, jobs requested of each other."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_COUNTED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_TIME = sa.DateTime(timezone=True)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=False)


def _added(name: str) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=False, server_default=sa.text("''"))


def upgrade() -> None:
    """Make the tables. No service manages a host yet: the first that reaches it claims it."""
    op.create_table(
        "services",
        *map(_text, ("name", "machine")),
        sa.Column("pid", sa.Integer(), nullable=False),
        *map(_text, ("version", "state")),
        sa.Column("epoch", _COUNTED, nullable=False),
        sa.Column("beats", _COUNTED, nullable=False),
        _text("heir"),
        sa.Column("started_at", _TIME, nullable=False),
        sa.Column("seen_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_services"),
    )
    op.create_table(
        "job_orders",
        *map(_text, ("job", "kind", "service")),
        sa.Column("cancelled", sa.Boolean(), nullable=False),
        sa.Column("ordered_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("job", name="pk_job_orders"),
    )
    op.create_index("ix_job_orders_service", "job_orders", ["service"])
    op.add_column("hosts", _added("owner"))
    op.add_column("hosts", _added("machine"))
    op.add_column("operations", _added("service"))
