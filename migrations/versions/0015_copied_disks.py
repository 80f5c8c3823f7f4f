"""The disks that a migration copies."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
works_with_previous = True


def upgrade() -> None:
    """Add the column; null is none: no earlier migration copied any."""
    op.add_column("migrations", sa.Column("disks", sa.JSON(), nullable=True))
