"""What a record says of the images that are made for a migration, at each moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

import pytest

from tests.support.examples.migrations import make_migration
from vmtune.engine.controllers import Controllers
from vmtune.engine.made_images import make_images
from vmtune.engine.notes import Hosts, Notes
from vmtune.engine.session import MigrationSession
from vmtune.errors import CommandRefused, OutcomeUnknown, VmtuneError
from vmtune.hypervisor.leftovers import ImagesLeft
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.disks import Disk
from vmtune.model.host.facts import Connection
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.record import Migration
from vmtune.model.tunables.built_in import BUILT_IN

VM = make_migration().vm


class Kept:
    def __init__(self) -> None:
        self.disks: list[tuple[CopiedDisk, ...]] = []

    async def save(self, fields: dict[str, Any]) -> None:
        self.disks.append(fields["disks"])


class Maker:
    """A destination, which sees what has been recorded when it is asked."""

    def __init__(self, kept: Kept, fails: VmtuneError | None) -> None:
        self._kept, self._fails = kept, fails
        self.recorded: tuple[CopiedDisk, ...] = ()

    async def prepare_images(
        self, vm: UUID, disks: Sequence[CopiedDisk], *, incremental: bool
    ) -> Sequence[CopiedDisk]:
        self.recorded = self._kept.disks[-1]
        if self._fails is not None:
            raise self._fails
        return [CopiedDisk(disk.target, disk.path, created=True) for disk in disks]


class Said:
    """Controllers, which note when the memory begins."""

    begins_ms = 0

    def memory_begins(self, at_ms: int) -> None:
        self.begins_ms = at_ms


class Noted(Kept):
    """A record whose disks have caught up."""

    record_ = make_migration(disks=(CopiedDisk("vda", "/x", ready_ms=4000),))

    async def record(self) -> Migration:
        return self.record_


async def test_the_controllers_are_told_when_the_memory_begins() -> None:
    session = MigrationSession(cast(Hosts, OfLibvirt()), cast(Notes, Noted()), BUILT_IN, 1.0)
    session.controllers = cast(Controllers, said := Said())
    await session._on_active()
    assert said.begins_ms == 4000


class OfLibvirt:
    async def connection(self) -> Connection:
        return Connection.LIBVIRT


class PlanOfDisks:
    disks = (Disk("vda", path="/x", format="raw", capacity_bytes=9),)

    def migrate_values(self) -> dict[str, object]:
        return {"copy_storage": True}


async def made(fails: VmtuneError | None = None) -> tuple[Kept, Maker]:
    kept = Kept()
    maker = Maker(kept, fails)
    hosts, notes = cast(Hosts, OfLibvirt()), cast(Notes, kept)
    try:
        await make_images(hosts, notes, VM, cast(Driver, maker), cast(Any, PlanOfDisks()))
    except VmtuneError as error:
        assert error is fails
    return kept, maker


async def test_the_intention_is_recorded_before_anything_is_made() -> None:
    kept, maker = await made()
    (intended,) = maker.recorded
    assert (intended.intended, intended.created) == (True, False)
    (last,) = kept.disks[-1]
    assert (last.intended, last.created) == (False, True)


async def test_nothing_is_recorded_of_what_was_refused() -> None:
    kept, _ = await made(CommandRefused("it exists"))
    assert kept.disks[-1] == ()


async def test_what_was_made_and_could_not_be_removed_again_stays_recorded() -> None:
    left = (CopiedDisk("vda", "/x", created=True),)
    kept, _ = await made(ImagesLeft(CommandRefused("no room"), left))
    assert kept.disks[-1] == left


@pytest.mark.parametrize("lost", [OutcomeUnknown("the connection was lost")])
async def test_the_intention_stays_where_nobody_knows_what_was_made(lost: VmtuneError) -> None:
    kept, _ = await made(lost)
    (disk,) = kept.disks[-1]
    assert disk.intended
