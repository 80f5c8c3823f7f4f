"""The intent of a migration."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
works_with_previous = True


def upgrade() -> None:
    """Add the column; null is none: no earlier migration had any."""
    op.add_column("migrations", sa.Column("intent", sa.JSON(), nullable=True))
