"""What vmtune remembers, in SQLite or PostgreSQL, as the domain's own objects."""

from vmtune.store.paging import Page
from vmtune.store.store import Store
from vmtune.store.upgrading import current_revision, head_revision, upgrade

__all__ = ["Page", "Store", "current_revision", "head_revision", "upgrade"]
