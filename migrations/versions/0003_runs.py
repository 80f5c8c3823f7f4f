"""Benchmark runs, where they ran, what they recorded, and the figures they were reduced to."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_COUNTED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "environments",
        _text("fingerprint"),
        _json("description"),
        sa.PrimaryKeyConstraint("fingerprint", name="pk_environments"),
    )
    op.create_table(
        "runs",
        sa.Column("number", _COUNTED, nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        _text("scenario"),
        _json("setup"),
        _json("values"),
        _text("profile"),
        sa.Column("revision", sa.Integer(), nullable=False),
        *map(_text, ("place", "qemu")),
        _json("options"),
        *map(_text, ("host", "state", "failure")),
        sa.Column("fingerprint", _TEXT, nullable=True),
        _json("conditions"),
        sa.Column("campaign", sa.Uuid(), nullable=True),
        sa.Column("arm", _TEXT, nullable=True),
        sa.Column("block", sa.Integer(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=True),
        _text("imported_from"),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("started_at", _TIME, nullable=True),
        sa.Column("ended_at", _TIME, nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_runs"),
        sa.UniqueConstraint("id", name="uq_runs_id"),
        sa.ForeignKeyConstraint(
            ["fingerprint"], ["environments.fingerprint"], name="fk_runs_fingerprint"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_runs_scenario_number", "runs", ["scenario", "number"])
    op.create_index("ix_runs_state", "runs", ["state"])
    op.create_index("ix_runs_campaign_number", "runs", ["campaign", "number"])
    op.create_index("ix_runs_fingerprint", "runs", ["fingerprint"])
    _of_run("run_heads", _json("head"))
    _of_run(
        "run_chunks",
        _text("series"),
        sa.Column("first", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        key=("series", "first"),
    )
    _of_run(
        "run_metrics",
        _text("metric"),
        sa.Column("value", sa.Double(), nullable=False),
        key=("metric",),
    )


def _of_run(table: str, *columns: sa.Column[Any], key: tuple[str, ...] = ()) -> None:
    """A table whose rows belong to a run."""
    op.create_table(
        table,
        sa.Column("run", _COUNTED, nullable=False, autoincrement=False),
        *columns,
        sa.PrimaryKeyConstraint("run", *key, name=f"pk_{table}"),
        sa.ForeignKeyConstraint(["run"], ["runs.number"], name=f"fk_{table}_run"),
    )


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=False)


def _json(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.JSON(), nullable=False)
