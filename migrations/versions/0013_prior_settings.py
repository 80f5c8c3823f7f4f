"""What was set before a migration on QEMUs without libvirt, and what a post-copy cost the guest."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add the columns. Nobody noted it of earlier migrations."""
    for name in ("prior", "postcopy"):
        op.add_column("migrations", sa.Column(name, sa.JSON(), nullable=True))
