"""The words of the API in the tables: states of VMs in evacuations, counts of drift scans, and
periodic tasks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_STATES = {
    "ordered": "requested",
    "gone": "moved or stopped by others",
    "not begun": "not started",
}
_COUNTS = {"looked_at": "checked", "nothing_wanted": "without_profile", "left_out": "skipped"}


def upgrade() -> None:
    """Rename. What the tables hold stays."""
    vms = sa.table("evacuation_vms", sa.column("state", sa.Text()))
    for before, after in _STATES.items():
        op.execute(vms.update().where(vms.c.state == before).values(state=after))
    for before, after in _COUNTS.items():
        op.execute(f"ALTER TABLE drift_scans RENAME COLUMN {before} TO {after}")
    op.create_table(
        "periodic_tasks",
        *(sa.Column(name, _TEXT, nullable=False) for name in ("name", "service")),
        sa.Column("begun_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_periodic_tasks"),
    )
    op.execute("INSERT INTO periodic_tasks SELECT name, service, begun_at FROM chores")
    op.execute("UPDATE periodic_tasks SET name = 'retention' WHERE name = 'keep house'")
    op.drop_table("chores")
