"""The disks that a migration copies."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
works_with_previous = True


def upgrade() -> None:
    """Add the column. No earlier migration copied any."""
    column = sa.Column("disks", sa.JSON(), nullable=False, server_default=sa.text("'[]'"))
    op.add_column("migrations", column)
