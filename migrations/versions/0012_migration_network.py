"""Addresses of a host's migration network."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns, empty."""
    for name in ("migrate_uri", "listen_address", "disks_uri"):
        op.add_column("hosts", sa.Column(name, _TEXT, nullable=False, server_default=sa.text("''")))
