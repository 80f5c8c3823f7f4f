"""A session's watch over post-copy asks for the record only where there is something to note."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from tests.support.examples.migrations import SimulatedClock, make_migration
from tests.support.simulated.control import sample
from vmtune.engine.notes import Hosts, Notes
from vmtune.engine.postcopy_watch import STALLED_AFTER_S, PostcopyWatch
from vmtune.errors import HostUnreachable
from vmtune.model.host.facts import Connection, VmState
from vmtune.model.migration.postcopy import NOT_OFFERED
from vmtune.model.migration.record import Migration, MigrationFields, MigrationState, QemuStatus
from vmtune.model.migration.record import Snapshot as Seen
from vmtune.model.versions import Version


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


class Managed:
    """A libvirt host of a release."""

    def __init__(self, release: Version, reachable: bool = True) -> None:
        self.release = release
        self.reachable = reachable

    async def host_facts(self) -> object:
        if not self.reachable:
            raise HostUnreachable("it does not answer", field="uri")
        return SimpleNamespace(libvirt=self.release)

    async def vm_state(self, vm: object) -> VmState:
        return VmState.PAUSED


class Between:
    """Two hosts of libvirt."""

    def __init__(self, destination: Managed) -> None:
        self._destination = destination

    async def connection(self) -> Connection:
        return Connection.LIBVIRT

    async def source(self) -> Managed:
        return Managed(Version(12, 8))

    async def destination(self) -> Managed:
        return self._destination


@pytest.mark.parametrize(
    ("release", "offered"),
    [(Version(12, 8), True), (Version(11, 3), False), (Version(8, 4), False)],
)
async def test_a_pause_that_libvirt_cannot_recover_says_what_helps(
    release: Version, offered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def is_lost(*_: object) -> bool:
        return False

    monkeypatch.setattr("vmtune.engine.postcopy_watch.is_lost", is_lost)
    kept, there = Kept(), Managed(release, reachable=False)
    kept.migration = replace(kept.migration, wanted={"postcopy_recovery": "manual"})
    hosts = cast("Hosts", Between(there))
    watch = PostcopyWatch(hosts, cast("Notes", kept), SimulatedClock())
    paused = Seen(QemuStatus.POSTCOPY_PAUSED)

    async def told() -> dict[str, str]:
        await watch.on_snapshot(paused)
        return {problem.code: problem.remedy for problem in kept.migration.problems}

    by_command = f"vmtune migration recover {kept.migration.id}"
    assert by_command in (await told())["postcopy_paused"], "it is not known yet"
    there.reachable = True
    for _ in range(2):
        said = await told()
        assert (NOT_OFFERED in said) is not offered
        assert (by_command in said["postcopy_paused"]) is offered
        assert ("by hand" in said["postcopy_paused"]) is not offered
    assert len(kept.migration.problems) == (1 if offered else 2)
    await watch.on_snapshot(Seen(QemuStatus.POSTCOPY_ACTIVE))
    assert [problem.code for problem in kept.migration.problems] == ["postcopy_resumed"]
