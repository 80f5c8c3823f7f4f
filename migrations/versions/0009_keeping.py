"""Drift scans; since when a VM is in its tuning state; what was thinned; cuts of the audit log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_COUNTED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_TIME = sa.DateTime(timezone=True)
_COUNTS = (
    "asked", "answered", "looked_at", "drifted", "nothing_wanted", "left_out", "failed",
)  # fmt: skip
_ONLY_GROWS = "the audit log can only be added to"
_NO_ENTRY = "no entry of the audit log has this number and hash"
_IS_ENTRY = "EXISTS (SELECT 1 FROM audit WHERE number = NEW.number AND hash = NEW.hash)"
_PLPGSQL = "LANGUAGE plpgsql SET search_path FROM CURRENT"
"""pg_restore looks for no table where none is named with its schema."""
_CUT = "COALESCE((SELECT max(number) FROM audit_cuts), 0)"


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=False)


def upgrade() -> None:
    """Make the tables. Each VM is in its state since it was last checked, and every migration has
    all samples."""
    op.create_table(
        "drift_scans",
        _text("host"),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in _COUNTS),
        _text("service"),
        sa.Column("ended_at", _TIME, nullable=True),
        sa.Column("took_ms", _COUNTED, nullable=False),
        sa.Column("problems", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("host", name="pk_drift_scans"),
        sa.ForeignKeyConstraint(
            ["host"], ["hosts.name"], name="fk_drift_scans_host", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "chores",
        *map(_text, ("name", "service")),
        sa.Column("begun_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_chores"),
    )
    op.add_column("tunings", sa.Column("since", _TIME, nullable=True))
    op.execute("UPDATE tunings SET since = as_of")
    with op.batch_alter_table("tunings") as batch:
        batch.alter_column("since", existing_type=_TIME, nullable=False)
    whole = sa.text("'whole'")
    op.add_column(
        "migrations", sa.Column("samples_kept", _TEXT, nullable=False, server_default=whole)
    )
    op.add_column("migrations", sa.Column("samples_thinned_s", sa.Integer(), nullable=True))
    op.create_index(
        "ix_migrations_samples_kept_ended_at", "migrations", ["samples_kept", "ended_at"]
    )
    op.create_table(
        "audit_cuts",
        sa.Column("number", _COUNTED, nullable=False, autoincrement=False),
        _text("hash"),
        sa.Column("at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit_cuts"),
    )
    if op.get_bind().dialect.name == "sqlite":
        _guard_on_sqlite()
    else:
        _guard_on_postgresql()


def _guard_on_sqlite() -> None:
    """Entries that were cut may be deleted; a cut names an existing entry, and stays."""
    op.execute("DROP TRIGGER audit_no_delete")
    op.execute(
        f"CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit WHEN OLD.number > {_CUT} "
        f"BEGIN SELECT RAISE(ABORT, '{_ONLY_GROWS}'); END"
    )
    op.execute(
        "CREATE TRIGGER audit_cuts_are_entries BEFORE INSERT ON audit_cuts "
        f"WHEN NOT {_IS_ENTRY} BEGIN SELECT RAISE(ABORT, '{_NO_ENTRY}'); END"
    )
    for what in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER audit_cuts_no_{what.lower()} BEFORE {what} ON audit_cuts "
            f"BEGIN SELECT RAISE(ABORT, '{_ONLY_GROWS}'); END"
        )


def _guard_on_postgresql() -> None:
    op.execute(
        f"CREATE OR REPLACE FUNCTION audit_only_grows() RETURNS trigger {_PLPGSQL} AS "
        f"$$ BEGIN IF TG_OP = 'DELETE' AND TG_TABLE_NAME = 'audit' AND OLD.number <= {_CUT} "
        f"THEN RETURN OLD; END IF; RAISE EXCEPTION '{_ONLY_GROWS}'; END $$"
    )
    op.execute(
        f"CREATE FUNCTION audit_cuts_are_entries() RETURNS trigger {_PLPGSQL} AS "
        f"$$ BEGIN IF {_IS_ENTRY} THEN RETURN NEW; END IF; RAISE EXCEPTION '{_NO_ENTRY}'; END $$"
    )
    op.execute(
        "CREATE TRIGGER audit_cuts_are_entries BEFORE INSERT ON audit_cuts "
        "FOR EACH ROW EXECUTE FUNCTION audit_cuts_are_entries()"
    )
    op.execute(
        "CREATE TRIGGER audit_cuts_only_grow BEFORE UPDATE OR DELETE ON audit_cuts "
        "FOR EACH ROW EXECUTE FUNCTION audit_only_grows()"
    )
