"""${message}"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
works_with_previous = False  # True where it only adds what the schema before may leave out


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}
