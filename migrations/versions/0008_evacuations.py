"""The queue of migrations, and evacuations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_COUNTED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_TIME = sa.DateTime(timezone=True)
_MIGRATIONS = sa.table(
    "migrations",
    sa.column("number", sa.BigInteger()),
    sa.column("id", sa.Uuid()),
    sa.column("source", sa.Text()),
    sa.column("destination", sa.Text()),
    sa.column("state", sa.Text()),
)
_UNDER_WAY = ("queued", "preparing", "starting", "active")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=False)


def upgrade() -> None:
    """Make the tables. Running migrations have their slots."""
    slots = op.create_table(
        "slots",
        sa.Column("number", _COUNTED, autoincrement=False, nullable=False),
        sa.Column("migration", sa.Uuid(), nullable=False),
        *map(_text, ("source", "destination")),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("running", sa.Boolean(), nullable=False),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_slots"),
        sa.UniqueConstraint("migration", name="uq_slots_migration"),
    )
    op.create_index("ix_slots_running_priority_number", "slots", ["running", "priority", "number"])
    found = op.get_bind().execute(sa.select(_MIGRATIONS).where(_MIGRATIONS.c.state.in_(_UNDER_WAY)))
    rows = [
        {
            "number": row.number,
            "migration": row.id,
            "source": row.source,
            "destination": row.destination,
            "priority": 0,
            "running": True,
            "held": False,
        }
        for row in found
    ]
    if rows:
        op.bulk_insert(slots, rows)
    op.create_table(
        "evacuations",
        sa.Column("number", _COUNTED, nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        _text("host"),
        sa.Column("destinations", sa.JSON(), nullable=False),
        _text("order"),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("max_outgoing", sa.Integer(), nullable=True),
        sa.Column("stop_after_failures", sa.Integer(), nullable=True),
        *map(_text, ("profile", "state", "reason")),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("ended_at", _TIME, nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_evacuations"),
        sa.UniqueConstraint("id", name="uq_evacuations_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_evacuations_host_number", "evacuations", ["host", "number"])
    op.create_index("ix_evacuations_state", "evacuations", ["state"])
    op.create_table(
        "evacuation_vms",
        sa.Column("evacuation", _COUNTED, autoincrement=False, nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("vm", sa.Uuid(), nullable=False),
        _text("name"),
        sa.Column("memory_bytes", _COUNTED, nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        *map(_text, ("state", "destination", "reason")),
        sa.Column("findings", sa.JSON(), nullable=False),
        sa.Column("overrides", sa.JSON(), nullable=False),
        sa.Column("migration", sa.Uuid(), nullable=True),
        sa.PrimaryKeyConstraint("evacuation", "position", name="pk_evacuation_vms"),
        sa.ForeignKeyConstraint(
            ["evacuation"], ["evacuations.number"], name="fk_evacuation_vms_evacuation"
        ),
        sa.UniqueConstraint("evacuation", "vm", name="uq_evacuation_vms_evacuation_vm"),
    )
    op.create_index(
        "ix_evacuation_vms_destination_state", "evacuation_vms", ["destination", "state"]
    )
