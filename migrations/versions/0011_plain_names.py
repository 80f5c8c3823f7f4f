"""Plain names in the tables: the testbed of runs and arms, the published table that a campaign is
compared with, the output of a block benchmark's programs, and bounds as min and max."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

_TUNABLES = {
    "reaper_least_interval_ms": "reaper_min_interval_ms",
    "reaper_most_interval_ms": "reaper_max_interval_ms",
}
_SETUP = {
    '"most_iterations":': '"max_iterations":',
    '"most_seconds":': '"max_seconds":',
    **_TUNABLES,
}
_RENAMED = {
    ("profile_revisions", "values"): _TUNABLES,
    ("applications", "wanted"): _TUNABLES,
    ("applications", "journal"): _TUNABLES,
    ("applications", "outcomes"): _TUNABLES,
    ("applications", "problems"): _TUNABLES,
    ("migrations", "wanted"): _TUNABLES,
    ("migrations", "journal"): _TUNABLES,
    ("migrations", "outcomes"): _TUNABLES,
    ("migrations", "problems"): _TUNABLES,
    ("tunings", "differing"): _TUNABLES,
    ("runs", "setup"): _SETUP,
    ("runs", "values"): _TUNABLES,
    ("campaigns", "campaign"): {
        '"place":': '"testbed":',
        '"beside":': '"published":',
        **_SETUP,
    },
    ("run_heads", "head"): {
        '"foreseen":': '"pool_forecast":',
        '"fio_said":': '"fio_output":',
        '"qemu_said":': '"qemu_output":',
        '"most_pooled":': '"max_pooled":',
        '"most_maps":': '"max_maps":',
        **_TUNABLES,
    },
}
"""By table and column of JSON text: what is replaced. A key is replaced with its quotes and colon,
which no string's content has unescaped. The audit log stays: its entries are hashed."""


def upgrade() -> None:
    """Rename. What the tables hold stays."""
    op.execute("ALTER TABLE runs RENAME COLUMN place TO testbed")
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    for (table, column), names in _RENAMED.items():
        text = f'"{column}"::text' if on_postgresql else f'"{column}"'
        kept_as = "::json" if on_postgresql else ""
        for before, after in names.items():
            # The tables and columns are those above; the rest is bound.
            rename = sa.text(
                f'UPDATE {table} SET "{column}" = replace({text}, :before, :after){kept_as} '  # noqa: S608
                f"WHERE {text} LIKE :pattern"
            )
            op.execute(rename.bindparams(before=before, after=after, pattern=f"%{before}%"))
