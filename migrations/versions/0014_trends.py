"""Found changes of metrics over time and their triage, and campaigns that run again and again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_TIME = sa.DateTime(timezone=True)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=False)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "found_changes",
        sa.Column("id", sa.Uuid(), nullable=False),
        *map(_text, ("scenario", "metric", "setup")),
        sa.Column("run", sa.Uuid(), nullable=False),
        sa.Column("since", _TIME, nullable=False),
        *map(_text, ("kind", "text")),
        sa.Column("worse", sa.Boolean(), nullable=False),
        sa.Column("found_at", _TIME, nullable=False),
        *map(_text, ("triage", "note", "triaged_by")),
        sa.Column("triaged_at", _TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_found_changes"),
    )
    op.create_index("ix_found_changes_scenario_metric", "found_changes", ["scenario", "metric"])
    op.create_index("ix_found_changes_triage_worse", "found_changes", ["triage", "worse"])
    op.create_table(
        "schedules",
        _text("name"),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("every_s", sa.Integer(), nullable=False),
        _text("host"),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("next_at", _TIME, nullable=False),
        sa.Column("last", sa.Uuid(), nullable=True),
        _text("waits"),
        sa.PrimaryKeyConstraint("name", name="pk_schedules"),
    )
