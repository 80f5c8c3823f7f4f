"""Studies, their trials, and which study a run is of."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
works_with_previous = True

_COUNTED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_TIME = sa.DateTime(timezone=True)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=False)


def upgrade() -> None:
    """Make the tables; a run of before them is of no study."""
    op.create_table(
        "studies",
        sa.Column("number", _COUNTED, nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        _text("name"),
        sa.Column("spec", sa.JSON(), nullable=False),
        *map(_text, ("state", "reason", "host")),
        sa.Column("finalists", sa.JSON(), nullable=True),
        sa.Column("campaign", sa.Uuid(), nullable=True),
        sa.Column("breaches", sa.JSON(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("started_at", _TIME, nullable=True),
        sa.Column("ended_at", _TIME, nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_studies"),
        sa.UniqueConstraint("id", name="uq_studies_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_studies_name_number", "studies", ["name", "number"])
    op.create_index("ix_studies_state", "studies", ["state"])
    op.create_table(
        "trials",
        sa.Column("study", _COUNTED, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("trial", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("study", "number", name="pk_trials"),
        sa.ForeignKeyConstraint(["study"], ["studies.number"], name="fk_trials_study"),
    )
    op.add_column("runs", sa.Column("study", sa.Uuid(), nullable=True))
    op.create_index("ix_runs_study_number", "runs", ["study", "number"])
