"""What the hosts have reported of migrations that vmtune did not start."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from vmtune.model.migration.record import MigrationState, Snapshot

STARTED = MigrationState.STARTING
"""The state in which an observed migration begins: another client has started it."""
_REMEMBERED = 1000


class Departures:
    """Which host said of which VM that it has migrated away, most recently; the oldest are
    forgotten."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, UUID], None] = {}

    def add(self, where: tuple[str, UUID]) -> None:
        """The host said so of the VM."""
        self._known.pop(where, None)
        self._known[where] = None
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]

    def discard(self, where: tuple[str, UUID]) -> None:
        """The VM is on the host again."""
        self._known.pop(where, None)

    def __contains__(self, where: object) -> bool:
        return where in self._known


def started_at(reported_at: datetime, snapshot: Snapshot | None, from_start: bool) -> datetime:
    """When a migration was started: when its first event came, or as long ago as QEMU says.

    :param from_start: it was its first event.
    """
    if from_start or snapshot is None or snapshot.elapsed_ms is None:
        return reported_at
    since_epoch = reported_at.timestamp() - snapshot.elapsed_ms / 1000
    return datetime.fromtimestamp(since_epoch, UTC)
