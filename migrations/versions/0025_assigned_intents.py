"""The intents of assignments."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
works_with_previous = True


def upgrade() -> None:
    """Add the column; null is that of the profile, which counted for all before."""
    op.add_column("assignments", sa.Column("intent", sa.JSON(), nullable=True))
