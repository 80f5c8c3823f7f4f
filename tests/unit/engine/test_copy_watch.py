"""What is recorded and told of disks while they are copied."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

import pytest

from tests.support.examples.migrations import make_migration
from vmtune.engine.copy_watch import CopyWatch
from vmtune.engine.notes import Hosts, Notes
from vmtune.errors import CommandRefused, HostUnreachable
from vmtune.model.host.disks import Disk
from vmtune.model.host.facts import Connection
from vmtune.model.migration.copy_progress import CopyProgress
from vmtune.model.migration.disks import CopiedDisk, Mirrored
from vmtune.model.migration.record import Migration, Trigger

MIB = 1 << 20


class Copying:
    """A source that copies 10 MiB a second of a disk of 100 MiB."""

    asked = sized = 0
    away = False
    only: Collection[str] | None = None
    """Those that are copied; None for all."""

    async def mirrored(self, vm: UUID, targets: Collection[str]) -> Mapping[str, Mirrored]:
        if self.away:
            raise HostUnreachable("gone")
        self.asked += 1
        copied = min(100, 10 * self.asked) * MIB
        going = [target for target in targets if self.only is None or target in self.only]
        return {target: Mirrored(100 * MIB, copied, copied == 100 * MIB) for target in going}

    async def disks(self, vm: UUID) -> Sequence[Disk]:
        return [Disk("vda", path="/x"), Disk("vdb", path="/y", format="qcow2"), Disk("sda")]

    async def resident_bytes(self, vm: UUID) -> int:
        self.sized += 1
        raise CommandRefused("not told")


class Kept:
    def __init__(self, *disks: CopiedDisk, trigger: Trigger = Trigger.VMTUNE) -> None:
        self.kept = make_migration(disks=disks, trigger=trigger)
        self.told: list[CopyProgress] = []

    async def record(self) -> Migration:
        return self.kept

    async def save(self, fields: Any) -> Migration:
        self.kept = replace(self.kept, **fields)
        return self.kept

    async def note_disks(self, disks: Sequence[CopiedDisk]) -> None:
        self.kept = replace(self.kept, disks=tuple(disks))

    async def copying(self, progress: CopyProgress, memory_bytes: int | None) -> None:
        assert memory_bytes is None
        self.told.append(progress)


class OfSource:
    def __init__(self, connection: Connection = Connection.LIBVIRT) -> None:
        self.driver = Copying()
        self.kind = connection

    async def connection(self) -> Connection:
        return self.kind

    async def source(self) -> Copying:
        return self.driver


async def test_rates_the_time_left_and_the_end_are_recorded_and_told() -> None:
    kept, hosts = Kept(CopiedDisk("vda", "/x")), OfSource()
    watch = CopyWatch(cast(Hosts, hosts), cast(Notes, kept))
    for second in range(5):
        await watch.look(100.0 + second, 100.0)
        await watch.look(100.0 + second + 0.5, 100.0)  # too soon
    (disk,) = kept.kept.disks
    assert (disk.copied_bytes, disk.bytes_per_s, disk.left_ms) == (50 * MIB, 10 * MIB, 5000)
    assert [progress.at_ms for progress in kept.told] == [0, 1000, 2000, 3000, 4000]
    assert kept.told[-1].disks == kept.kept.disks
    for second in range(5, 12):
        await watch.look(100.0 + second, 100.0)
    (disk,) = kept.kept.disks
    assert (disk.ready_ms, disk.left_ms, kept.told[-1].ready) == (9000, None, True)


async def test_copies_are_looked_for_more_often_until_all_have_begun() -> None:
    kept, hosts = Kept(CopiedDisk("vda", "/x"), CopiedDisk("vdb", "/y")), OfSource()
    watch = CopyWatch(cast(Hosts, hosts), cast(Notes, kept))
    looks = (
        (1.0, (), 1), (1.1, (), 1), (1.3, ("vda",), 2), (1.6, ("vda", "vdb"), 3),
        (1.9, ("vda",), 3), (2.5, ("vda",), 3), (2.7, ("vda",), 4), (3.0, ("vda",), 4),
    )  # fmt: skip
    for at, only, asked in looks:
        hosts.driver.only = only
        await watch.look(at, 0.0)
        assert hosts.driver.asked == asked, at


async def test_a_source_that_does_not_answer_is_asked_again() -> None:
    kept, hosts = Kept(CopiedDisk("vda", "/x")), OfSource()
    watch = CopyWatch(cast(Hosts, hosts), cast(Notes, kept))
    hosts.driver.away = True
    await watch.look(1.0, 0.0)
    assert kept.told == []
    hosts.driver.away = False
    await watch.look(2.0, 0.0)
    assert kept.kept.disks[0].copied_bytes == 10 * MIB


async def test_nobody_is_asked_where_no_disk_is_copied() -> None:
    kept, hosts = Kept(), OfSource()
    watch = CopyWatch(cast(Hosts, hosts), cast(Notes, kept))
    for second in range(3):
        await watch.look(float(second), 0.0)
    assert (hosts.driver.asked, kept.told) == (0, [])


async def test_a_copy_whose_end_no_look_saw_has_caught_up_once_the_memory_is_sent() -> None:
    kept = Kept(CopiedDisk("vda", "/x", left_ms=5), CopiedDisk("vdb", "/y", ready_ms=7))
    watch = CopyWatch(cast(Hosts, OfSource()), cast(Notes, kept))
    await watch.memory_begins(101.5, 100.0)
    one, other = kept.kept.disks
    assert (one.ready_ms, one.left_ms, other.ready_ms) == (1500, None, 7)


async def test_of_what_others_have_started_disks_are_found_by_their_copies() -> None:
    """One after the other, as libvirt begins them."""
    kept, hosts = Kept(trigger=Trigger.OBSERVED), OfSource()
    watch = CopyWatch(cast(Hosts, hosts), cast(Notes, kept))
    hosts.driver.only = ()
    await watch.look(1.0, 0.0)
    assert (kept.kept.disks, kept.told) == ((), [])
    hosts.driver.only = ("vdb",)
    await watch.look(2.0, 0.0)
    assert [(disk.target, disk.format) for disk in kept.kept.disks] == [("vdb", "qcow2")]
    assert hosts.driver.sized == 1, "its memory is asked for once there is progress to tell"
    hosts.driver.only = ("vda", "vdb")
    await watch.look(3.0, 0.0)
    assert {disk.target: disk.copied_bytes for disk in kept.kept.disks} == {
        "vda": 30 * MIB,
        "vdb": 30 * MIB,
    }
    hosts.driver.only = ()  # libvirt has ended them
    await watch.look(4.0, 0.0, memory=True)
    assert (len(kept.kept.disks), hosts.driver.sized) == (2, 1)


@pytest.mark.parametrize("connection", [Connection.LIBVIRT, Connection.QMP])
async def test_nobody_is_asked_for_good_where_others_copy_none(connection: Connection) -> None:
    kept, hosts = Kept(trigger=Trigger.OBSERVED), OfSource(connection)
    hosts.driver.only = ()
    watch = CopyWatch(cast(Hosts, hosts), cast(Notes, kept))
    for second in range(9):
        await watch.look(float(second), 0.0, memory=second > 1)
    assert hosts.driver.asked == (3 if connection is Connection.LIBVIRT else 0)
    assert (kept.kept.disks, kept.told) == ((), [])
