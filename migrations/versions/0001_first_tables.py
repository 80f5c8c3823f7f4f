"""Hosts, VMs, profiles, assignments, applications, migrations and events.

The types are spelt out here, not taken from vmtune.storage.tables.core: that describes the newest
schema, and this one must stay what it was.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_COUNTED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_TIME = sa.DateTime(timezone=True)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=False)


def _json(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.JSON(), nullable=False)


def _time(name: str, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, _TIME, nullable=nullable)


def upgrade() -> None:
    """Make the tables."""
    _inventory()
    _profiles()
    _operations()
    _migrations()
    op.create_table(
        "events",
        sa.Column("id", _COUNTED, nullable=False),
        _time("at"),
        _text("topic"),
        _text("subject"),
        _json("data"),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sqlite_autoincrement=True,
    )


def _inventory() -> None:
    op.create_table(
        "hosts",
        _text("name"),
        _text("uri"),
        _text("peer_uri"),
        _text("migration_address"),
        _time("created_at"),
        sa.PrimaryKeyConstraint("name", name="pk_hosts"),
    )
    op.create_table(
        "vms",
        sa.Column("uuid", sa.Uuid(), nullable=False),
        _text("name"),
        _text("host"),
        _json("labels"),
        _time("seen_at", nullable=True),
        sa.PrimaryKeyConstraint("uuid", name="pk_vms"),
        sa.ForeignKeyConstraint(["host"], ["hosts.name"], name="fk_vms_host"),
    )
    op.create_index("ix_vms_host", "vms", ["host"])


def _profiles() -> None:
    op.create_table(
        "profiles",
        _text("name"),
        _text("description"),
        sa.Column("current", sa.Integer(), nullable=False),
        _time("created_at"),
        _time("deleted_at", nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_profiles"),
    )
    op.create_table(
        "profile_revisions",
        _text("profile"),
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        _json("values"),
        _text("note"),
        _time("created_at"),
        sa.PrimaryKeyConstraint("profile", "number", name="pk_profile_revisions"),
        sa.ForeignKeyConstraint(
            ["profile"], ["profiles.name"], name="fk_profile_revisions_profile"
        ),
    )
    op.create_table(
        "assignments",
        sa.Column("id", _COUNTED, nullable=False),
        _text("target"),
        _text("key"),
        _text("profile"),
        _time("created_at"),
        sa.PrimaryKeyConstraint("id", name="pk_assignments"),
        sa.ForeignKeyConstraint(["profile"], ["profiles.name"], name="fk_assignments_profile"),
        sa.UniqueConstraint("target", "key", name="uq_assignments_target_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_assignments_profile", "assignments", ["profile"])


def _operations() -> None:
    op.create_table(
        "operations",
        sa.Column("vm", sa.Uuid(), nullable=False),
        _text("kind"),
        sa.Column("operation", sa.Uuid(), nullable=False),
        _time("taken_at"),
        sa.PrimaryKeyConstraint("vm", name="pk_operations"),
    )
    op.create_table(
        "applications",
        sa.Column("number", _COUNTED, nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("vm", sa.Uuid(), nullable=False),
        _text("host"),
        _text("profile"),
        sa.Column("revision", sa.Integer(), nullable=False),
        _json("wanted"),
        _text("state"),
        sa.Column("best_effort", sa.Boolean(), nullable=False),
        _json("journal"),
        _json("outcomes"),
        _json("problems"),
        _time("created_at"),
        _time("ended_at", nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_applications"),
        sa.UniqueConstraint("id", name="uq_applications_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_applications_vm_number", "applications", ["vm", "number"])
    op.create_index("ix_applications_state", "applications", ["state"])


def _migrations() -> None:
    op.create_table(
        "migrations",
        sa.Column("number", _COUNTED, nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("vm", sa.Uuid(), nullable=False),
        _text("vm_name"),
        _text("source"),
        _text("destination"),
        _text("trigger"),
        _text("profile"),
        sa.Column("revision", sa.Integer(), nullable=False),
        _json("wanted"),
        _json("overrides"),
        _text("state"),
        _text("abort"),
        _json("journal"),
        _json("outcomes"),
        sa.Column("totals", sa.JSON(), nullable=True),
        _text("failure"),
        _json("problems"),
        _time("created_at"),
        _time("started_at", nullable=True),
        _time("active_at", nullable=True),
        _time("ended_at", nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_migrations"),
        sa.UniqueConstraint("id", name="uq_migrations_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_migrations_vm_number", "migrations", ["vm", "number"])
    op.create_index("ix_migrations_state", "migrations", ["state"])
    op.create_table(
        "sample_chunks",
        sa.Column("migration", _COUNTED, nullable=False, autoincrement=False),
        sa.Column("position", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("last_at_ms", _COUNTED, nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("migration", "position", name="pk_sample_chunks"),
        sa.ForeignKeyConstraint(
            ["migration"], ["migrations.number"], name="fk_sample_chunks_migration"
        ),
    )
