"""Tokens, web sessions, and the audit log, which can only be added to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_COUNTED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_TIME = sa.DateTime(timezone=True)


def _text(name: str, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=nullable)


def _json(name: str, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.JSON(), nullable=nullable)


def _time(name: str, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, _TIME, nullable=nullable)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "tokens",
        *map(_text, ("id", "name", "secret_hash")),
        _json("scopes"),
        _json("hosts", nullable=True),
        _json("labels"),
        *map(_text, ("creator_kind", "creator", "creator_name")),
        _time("created_at"),
        _time("expires_at", nullable=True),
        _time("revoked_at", nullable=True),
        _time("used_at", nullable=True),
        _text("used_from"),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
    )
    op.create_table(
        "web_sessions",
        _text("id"),
        _text("token", nullable=True),
        *map(_text, ("subject", "name")),
        _json("rights", nullable=True),
        _text("address"),
        *map(_time, ("created_at", "seen_at", "expires_at")),
        sa.PrimaryKeyConstraint("id", name="pk_web_sessions"),
        sa.ForeignKeyConstraint(["token"], ["tokens.id"], name="fk_web_sessions_token"),
    )
    op.create_index("ix_web_sessions_token", "web_sessions", ["token"])
    _audit()


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("number", _COUNTED, nullable=False, autoincrement=False),
        _time("at"),
        *map(_text, ("actor_kind", "actor", "actor_name", "origin", "action", "subject")),
        _text("outcome"),
        sa.Column("status", sa.Integer(), nullable=True),
        *map(_text, ("reason", "request")),
        _json("codes"),
        _json("changes"),
        _text("hash"),
        sa.PrimaryKeyConstraint("number", name="pk_audit"),
    )
    op.create_index("ix_audit_actor_number", "audit", ["actor", "number"])
    op.create_index("ix_audit_outcome_number", "audit", ["outcome", "number"])
    if op.get_bind().dialect.name == "sqlite":
        for what in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER audit_no_{what.lower()} BEFORE {what} ON audit "
                "BEGIN SELECT RAISE(ABORT, 'the audit log can only be added to'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION audit_only_grows() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the audit log can only be added to'; END $$"
    )
    op.execute(
        "CREATE TRIGGER audit_only_grows BEFORE UPDATE OR DELETE ON audit "
        "FOR EACH ROW EXECUTE FUNCTION audit_only_grows()"
    )
