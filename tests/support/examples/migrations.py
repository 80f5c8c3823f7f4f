"""A record of a migration, and what a session needs to work on one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from tests.support.simulated.fakes import VM
from vmtune.model.migration.record import Migration, MigrationState, Trigger


def make_migration(**fields: Any) -> Migration:
    """An active migration of :data:`~tests.support.simulated.fakes.VM` from a to b; *fields*
    otherwise."""
    usual: dict[str, Any] = {
        "id": uuid4(),
        "vm": VM,
        "vm_name": "web",
        "source": "a",
        "destination": "b",
        "trigger": Trigger.VMTUNE,
        "profile": "",
        "revision": 0,
        "wanted": {},
        "overrides": (),
        "state": MigrationState.ACTIVE,
        "created_at": datetime.now(UTC),
    }
    return Migration(**(usual | fields))


class SimulatedClock:
    """Time that passes by sleeping only, or as a test sets ``at``."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        """Seconds."""
        return self.at

    async def sleep(self, seconds: float) -> None:
        """Pass at once."""
        self.at += seconds
