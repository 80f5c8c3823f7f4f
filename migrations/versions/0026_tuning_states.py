"""An index by which VMs of a tuning state are found and counted."""

from __future__ import annotations

from alembic import op

revision = "0026"
down_revision = "0025"
works_with_previous = True


def upgrade() -> None:
    """Add the index."""
    op.create_index("ix_tunings_state_since", "tunings", ["state", "since"])
