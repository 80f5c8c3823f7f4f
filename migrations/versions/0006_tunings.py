"""The tuning state of each VM, as last seen: initially from its last application."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_COLUMNS: tuple[tuple[str, sa.types.TypeEngine[Any], bool], ...] = (  # any: of any column
    ("vm", sa.Uuid(), False),
    ("state", _TEXT, False),
    ("profile", _TEXT, False),
    ("revision", sa.Integer(), False),
    ("application", sa.Uuid(), True),
    ("differing", sa.JSON(), False),
    ("as_of", sa.DateTime(timezone=True), False),
)
_APPLICATIONS = sa.table(
    "applications",
    sa.column("number", sa.BigInteger()),
    sa.column("id", sa.Uuid()),
    sa.column("vm", sa.Uuid()),
    sa.column("profile", sa.Text()),
    sa.column("revision", sa.Integer()),
    sa.column("state", sa.Text()),
    sa.column("outcomes", sa.JSON()),
    sa.column("created_at", sa.DateTime(timezone=True)),
    sa.column("ended_at", sa.DateTime(timezone=True)),
)
_DIFFERS = {"overwritten", "rejected", "reverted"}
_AS_WANTED = {"effective", "pending migration"}


def upgrade() -> None:
    """Make the table, and fill it from each VM's current application."""
    tunings = op.create_table(
        "tunings",
        *(sa.Column(name, kind, nullable=nullable) for name, kind, nullable in _COLUMNS),
        sa.PrimaryKeyConstraint("vm", name="pk_tunings"),
    )
    found = op.get_bind().execute(
        sa.select(_APPLICATIONS)
        .where(_APPLICATIONS.c.state == "applied")
        .order_by(_APPLICATIONS.c.number)
    )
    newest = {row.vm: row for row in found}  # the last one of a VM stays
    rows = [
        {
            "vm": row.vm,
            "state": _state({outcome["status"] for outcome in row.outcomes}),
            "profile": row.profile,
            "revision": row.revision,
            "application": row.id,
            "differing": [o["tunable"] for o in row.outcomes if o["status"] not in _AS_WANTED],
            "as_of": row.ended_at or row.created_at,
        }
        for row in newest.values()
    ]
    if rows:
        op.bulk_insert(tunings, rows)


def _state(statuses: set[str]) -> str:
    if statuses & _DIFFERS:
        return "drifted"
    return next((state for state in ("unknown", "pending restart") if state in statuses), "tuned")
