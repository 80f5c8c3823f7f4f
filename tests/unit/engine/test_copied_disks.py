"""What becomes of the images that were made for a migration, by how it ended."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

import pytest

from tests.support.examples.migrations import make_migration
from tests.unit.engine.test_end_state import FAILED, LEFT, Host, Said
from vmtune.engine import copied_disks, end_state
from vmtune.engine.copied_disks import end_copies
from vmtune.engine.end_state import Evidence
from vmtune.engine.finalize import finalize
from vmtune.engine.notes import Hosts
from vmtune.errors import HostUnreachable
from vmtune.hypervisor.leftovers import PoolsLeft
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import Connection, VmState
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.record import MigrationFields, MigrationState, QemuStatus, Trigger
from vmtune.model.plan.outcome import Outcome
from vmtune.model.tunables.built_in import BUILT_IN

DISKS = (
    CopiedDisk("vda", "/images/made", created=True, total_bytes=9, copied_bytes=9, ready_ms=5),
    CopiedDisk("vdb", "/images/was-there"),
)


class ImageHost(Host):
    """Keeps what it is told to remove."""

    removed: Collection[str] | None = None
    away_for = 0
    """So many calls fail first."""
    pools: Collection[str] = ()
    """That cannot be removed."""

    async def release_images(
        self, vm: UUID, remove: Collection[CopiedDisk] = ()
    ) -> Collection[str]:
        self.away_for -= 1
        if self.away_for >= 0:
            raise HostUnreachable("its libvirt is being started")
        self.removed = [disk.path for disk in remove]
        gone = [disk.path for disk in remove if disk.created]
        if self.pools:
            raise PoolsLeft(self.pools, gone)
        return gone

    async def reset_after_migration(self, vm: UUID, prior: object = None) -> None: ...


class Both:
    def __init__(self, source: Host, destination: Host) -> None:
        self._source, self._destination = source, destination

    async def connection(self) -> Connection:
        return Connection.LIBVIRT

    async def source(self) -> Host:
        return self._source

    async def destination(self) -> Host:
        return self._destination


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_state, "RETRY_S", 0.001)
    monkeypatch.setattr(end_state, "AGREES_WITHIN_S", 0.05)
    monkeypatch.setattr(copied_disks, "RETRY_S", 0.001)


async def _nothing(vm: UUID, driver: Driver) -> Sequence[Outcome]:
    return ()


async def ended(
    here: Said,
    there: Said,
    evidence: Evidence,
    away_for: int = 0,
    disks: tuple[CopiedDisk, ...] = DISKS,
    pools: Collection[str] = (),
) -> tuple[MigrationFields, ImageHost]:
    destination = ImageHost(there)
    destination.pools = pools
    destination.away_for = away_for
    hosts = cast(Hosts, Both(ImageHost(here), destination))
    record = make_migration(disks=disks)
    return await finalize(record, hosts, evidence, BUILT_IN, _nothing), destination


def codes(fields: Any) -> list[str]:
    return [problem.code for problem in fields.get("problems", ())]


async def test_what_was_made_is_removed_where_the_vm_stayed_on_its_source() -> None:
    fields, destination = await ended(FAILED, LEFT, Evidence())
    assert fields["state"] is MigrationState.FAILED
    assert destination.removed == ["/images/made"]
    assert "image_kept" not in codes(fields)


async def test_a_destination_that_is_away_for_a_moment_is_asked_again() -> None:
    fields, destination = await ended(FAILED, LEFT, Evidence(), away_for=2)
    assert destination.removed == ["/images/made"]
    assert "image_left" not in codes(fields)


async def test_what_cannot_be_removed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copied_disks, "RELEASES_WITHIN_S", 0.01)
    fields, destination = await ended(FAILED, LEFT, Evidence(), away_for=1000)
    assert destination.removed is None
    assert codes(fields).count("image_left") == 1


async def test_what_was_only_intended_is_told_where_it_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copied_disks, "RELEASES_WITHIN_S", 0.01)
    intended = (CopiedDisk("vda", "/images/made", intended=True, total_bytes=9),)
    fields, destination = await ended(FAILED, LEFT, Evidence(), disks=intended)
    assert destination.removed == ["/images/made"]
    assert codes(fields).count("image_left") == 1


async def test_a_pool_that_stays_is_told_and_no_image_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copied_disks, "RELEASES_WITHIN_S", 0.01)
    fields, _ = await ended(FAILED, LEFT, Evidence(), pools=["vmtune-x-0"])
    (problem,) = [each for each in fields["problems"] if each.code == "copies_not_ended"]
    assert "vmtune-x-0" in problem.message
    assert problem.remedy == "virsh pool-destroy vmtune-x-0"
    assert "image_left" not in codes(fields)


async def test_so_is_one_of_a_migration_that_has_completed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copied_disks, "RELEASES_WITHIN_S", 0.01)
    destination = ImageHost(LEFT)
    destination.pools = ["vmtune-x-0"]
    host, record = cast(Driver, destination), make_migration(disks=DISKS)
    (problem,) = await end_copies(record, MigrationState.COMPLETED, host)
    assert problem.code == "copies_not_ended"
    assert destination.removed == []
    others = replace(record, trigger=Trigger.OBSERVED)
    assert await end_copies(others, MigrationState.COMPLETED, host) == ()


SPLIT: Said = (VmState.PAUSED, QemuStatus.POSTCOPY_PAUSED)


@pytest.mark.parametrize(
    ("here", "evidence"),
    [
        (LEFT, Evidence()),
        (LEFT, Evidence(left=True)),
        (SPLIT, Evidence(switched=True)),
        (FAILED, Evidence(switched=True)),
    ],
    ids=["on neither", "left and ended", "lost", "rolled back"],
)
async def test_images_stay_where_the_guest_may_have_run_with_them(
    here: Said, evidence: Evidence
) -> None:
    """It may have arrived unseen and written there since: the source's images are older then."""
    fields, destination = await ended(here, LEFT, evidence)
    assert fields["state"] is MigrationState.FAILED
    assert destination.removed == []
    assert codes(fields).count("image_kept") == 1
