"""A session's watch over post-copy asks for the record only where there is something to note."""

from __future__ import annotations

from typing import cast

from tests.support.migrations import SimulatedClock, make_migration
from vmtune.engine.notes import Hosts, Notes
from vmtune.engine.postcopy_watch import PostcopyWatch
from vmtune.model.migration.record import Migration, MigrationFields, MigrationState, QemuStatus
from vmtune.model.migration.record import Snapshot as Seen


class Kept:
    """A record in memory, which counts how often it is read."""

    def __init__(self, state: MigrationState = MigrationState.ACTIVE) -> None:
        self.migration = make_migration(state=state)
        self.reads = 0
        self.states: list[MigrationState] = []

    async def record(self) -> Migration:
        self.reads += 1
        return self.migration

    async def save(self, fields: MigrationFields) -> Migration:
        self.states.append(fields["state"])
        return self.migration


def watch_over(kept: Kept) -> PostcopyWatch:
    return PostcopyWatch(cast("Hosts", None), cast("Notes", kept), SimulatedClock())


async def test_one_in_precopy_costs_one_look_at_the_record() -> None:
    kept = Kept()
    watch = watch_over(kept)
    for _ in range(20):
        await watch.on_snapshot(Seen(QemuStatus.ACTIVE))
    assert kept.reads == 1


async def test_one_that_an_earlier_process_saw_paused_is_noted_once_it_goes_on() -> None:
    """Until QEMU says so the record stays: recovering passes through other states."""
    kept = Kept(MigrationState.POSTCOPY_PAUSED)
    watch = watch_over(kept)
    for status in (QemuStatus.OTHER, QemuStatus.OTHER, QemuStatus.POSTCOPY_ACTIVE):
        await watch.on_snapshot(Seen(status))
    assert kept.states == [MigrationState.ACTIVE]
