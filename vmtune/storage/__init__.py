"""What vmtune remembers, in SQLite or PostgreSQL, as the domain's own objects."""

from vmtune.storage.paging import Page
from vmtune.storage.store import Store
from vmtune.storage.upgrades import current_revision, head_revision, upgrade

__all__ = ["Page", "Store", "current_revision", "head_revision", "upgrade"]
