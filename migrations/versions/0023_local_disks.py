"""The local disks of evacuated VMs, and which migrations copy disks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
works_with_previous = True

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns. Earlier evacuations copied disks where the VM's profile said so; of
    migrations in the queue it is not known, and they count as those that copy none."""
    op.add_column(
        "evacuations",
        sa.Column("local_disks", _TEXT, nullable=False, server_default=sa.text("'profile'")),
    )
    for name in ("disks", "values"):
        op.add_column("evacuation_vms", sa.Column(name, sa.JSON(), nullable=True))
    op.add_column(
        "slots", sa.Column("copies", sa.Boolean(), nullable=False, server_default=sa.false())
    )
