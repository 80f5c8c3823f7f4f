"""The intents of evacuations and of profiles' revisions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
works_with_previous = True


def upgrade() -> None:
    """Add the columns; null is none: neither had any."""
    op.add_column("evacuations", sa.Column("intent", sa.JSON(), nullable=True))
    op.add_column("profile_revisions", sa.Column("intent", sa.JSON(), nullable=True))
