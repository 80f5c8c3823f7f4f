"""What a list of VMs tells about a migration that has not ended."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from vmtune.model.migration.record import MigrationState


@dataclass(frozen=True, slots=True)
class OpenMigration:
    """A migration that has not ended, and its state."""

    id: UUID
    state: MigrationState
