"""A session's watch over post-copy asks for the record only where there is something to note."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from tests.support.control import sample
from tests.support.migrations import SimulatedClock, make_migration
from vmtune.engine.notes import Hosts, Notes
from vmtune.engine.postcopy_watch import STALLED_AFTER_S, PostcopyWatch
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
        if "state" in fields:
            self.states.append(fields["state"])
        self.migration = replace(self.migration, **fields)
        return self.migration


def watch_over(kept: Kept, clock: SimulatedClock | None = None) -> PostcopyWatch:
    return PostcopyWatch(cast("Hosts", None), cast("Notes", kept), clock or SimulatedClock())


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


async def test_one_that_sends_nothing_says_so_until_it_goes_on() -> None:
    """QEMU notices a cut only when TCP gives up, after minutes."""
    kept, clock = Kept(), SimulatedClock()
    watch = watch_over(kept, clock)

    async def see(sent_bytes: int) -> list[str]:
        seen = replace(sample(QemuStatus.POSTCOPY_ACTIVE), transferred_bytes=sent_bytes)
        await watch.on_snapshot(Seen(QemuStatus.POSTCOPY_ACTIVE, seen))
        return [problem.code for problem in kept.migration.problems]

    assert await see(1000) == []
    await clock.sleep(STALLED_AFTER_S - 1)
    assert await see(1000) == []
    await clock.sleep(1)
    assert await see(1000) == ["postcopy_stalled"]
    (told,) = kept.migration.problems
    assert "do not shut down either host" in told.message
    reads = kept.reads
    assert await see(1000) == ["postcopy_stalled"]
    assert kept.reads == reads
    assert await see(2000) == []
