"""What lists of migrations are filtered and sorted by, and the maintenance of hosts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
works_with_previous = False

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_MIGRATIONS = sa.table(
    "migrations",
    sa.column("number", _NUMBER),
    sa.column("state", sa.Text()),
    sa.column("wanted", sa.JSON()),
    sa.column("step_records", sa.JSON()),
    sa.column("totals", sa.JSON()),
    sa.column("downtime_ms", _NUMBER),
    sa.column("total_time_ms", _NUMBER),
    sa.column("downtime_exceeded", sa.Boolean()),
)


def upgrade() -> None:
    """Add the columns, and fill them from the totals. Whether a limit was kept that a step or a
    user changed is not worked out anew: such migrations count as having kept it in lists."""
    op.add_column("hosts", sa.Column("maintenance_since", sa.DateTime(timezone=True)))
    for name in ("downtime_ms", "total_time_ms"):
        op.add_column(
            "migrations", sa.Column(name, _NUMBER, nullable=False, server_default=sa.text("-1"))
        )
    op.add_column(
        "migrations",
        sa.Column("downtime_exceeded", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.create_index(
        "ix_migrations_downtime_exceeded_number", "migrations", ["downtime_exceeded", "number"]
    )
    op.create_index("ix_vms_name_uuid_host", "vms", ["name", "uuid", "host"])
    _fill()


def _fill() -> None:
    database = op.get_bind()
    columns = _MIGRATIONS.c
    query = sa.select(
        columns.number, columns.state, columns.wanted, columns.step_records, columns.totals
    )
    rows = [row for row in database.execute(query.where(columns.totals.is_not(None))) if row.totals]
    for row in rows:
        downtime_ms = row.totals["downtime_ms"]
        limit_ms = row.wanted.get("downtime_limit_ms")
        kept = row.state != "completed" or row.step_records or not isinstance(limit_ms, int)
        database.execute(
            _MIGRATIONS.update()
            .where(columns.number == row.number)
            .values(
                downtime_ms=downtime_ms,
                total_time_ms=row.totals["total_time_ms"],
                downtime_exceeded=not kept and downtime_ms > limit_ms,
            )
        )
