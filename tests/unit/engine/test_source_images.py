"""When the source's images are removed, what is recorded around it, and when they stay."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast
from uuid import UUID

import pytest

from tests.support.examples.migrations import make_migration
from vmtune.engine import copied_disks, source_images
from vmtune.engine.notes import Hosts
from vmtune.engine.source_images import settle_source_images
from vmtune.errors import CommandRefused, HostUnreachable, NotFound, OutcomeUnknown, VmtuneError
from vmtune.hypervisor.leftovers import PoolsLeft
from vmtune.model.host.disks import BY_DEVICE, Disk
from vmtune.model.host.facts import VmState
from vmtune.model.migration.disks import CopiedDisk, SourceImage
from vmtune.model.migration.record import MigrationFields, MigrationState, Trigger
from vmtune.model.plan.outcome import Outcome, Status

HERE, THERE = f"{BY_DEVICE}x/1/1", f"{BY_DEVICE}x/2/9"
MADE = CopiedDisk("vda", "/images/x", created=True, identity=HERE)
FOUND = CopiedDisk("vdb", "/images/y", identity=HERE)
BEGUN = CopiedDisk("vda", "/images/x", created=True, source_image=SourceImage.REMOVING)
REMOVE = {"copy_storage": True, "copy_source_images": "remove"}
EFFECTIVE = Outcome("copy_source_images", Status.EFFECTIVE, "remove", "remove")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_images, "RETRY_S", 0.001)
    monkeypatch.setattr(source_images, "ANSWERS_WITHIN_S", 0.01)
    monkeypatch.setattr(copied_disks, "RELEASES_WITHIN_S", 0.01)


class Destination:
    def __init__(self, state: VmState | VmtuneError = VmState.RUNNING, *disks: Disk) -> None:
        self.state = state
        self._disks = disks or (Disk("vda", path="/images/x", identity=THERE),)

    async def vm_state(self, vm: UUID) -> VmState:
        if isinstance(self.state, VmtuneError):
            raise self.state
        return self.state

    async def disks(self, vm: UUID) -> Collection[Disk]:
        return self._disks


class Source:
    """Removes what it is told to, and sees what has been recorded by then.

    :param says: why an image stays, or what is raised instead; one call after the other, and the
        last ever after.
    """

    def __init__(self, *says: str | BaseException) -> None:
        self._says = list(says or ("",))
        self.pools: Collection[str] = ()
        self.asked: list[str] = []
        self.recorded: list[tuple[CopiedDisk, ...]] = []
        self.saved: list[MigrationFields] = []

    async def save(self, fields: MigrationFields) -> None:
        self.saved.append(fields)

    async def remove_source_images(
        self, vm: UUID, disks: Collection[CopiedDisk]
    ) -> Mapping[str, str]:
        self.asked += [disk.path for disk in disks]
        self.recorded.append(self.saved[-1]["disks"])
        says = self._says.pop(0) if len(self._says) > 1 else self._says[0]
        if isinstance(says, BaseException):
            raise says
        return {disk.target: says for disk in disks}

    async def release_images(
        self, vm: UUID, remove: Collection[CopiedDisk] = ()
    ) -> Collection[str]:
        assert not remove
        if self.pools:
            raise PoolsLeft(self.pools)
        return ()


class Both:
    def __init__(self, source: Source, destination: Destination | None) -> None:
        self._source, self._destination = source, destination

    async def source(self) -> Source:
        return self._source

    async def destination(self) -> Destination | None:
        return self._destination


async def settled(
    source: Source,
    destination: Destination | None,
    *disks: CopiedDisk,
    state: MigrationState = MigrationState.COMPLETED,
    **fields: Any,
) -> MigrationFields:
    record = make_migration(**{"wanted": REMOVE, "disks": disks or (MADE,)} | fields)
    end = MigrationFields(state=state, outcomes=(EFFECTIVE,), problems=())
    hosts = cast(Hosts, Both(source, destination))
    return await settle_source_images(record, end, hosts, source.save)


def codes(fields: MigrationFields) -> list[str]:
    return [problem.code for problem in fields["problems"]]


async def test_an_image_is_removed_once_the_vm_runs_there_and_what_is_to_be_is_recorded() -> None:
    source = Source()
    fields = await settled(source, Destination())
    assert source.asked == ["/images/x"]
    assert [disk.source_image for disk in source.recorded[0]] == [SourceImage.REMOVING]
    assert [disk.source_image for disk in fields["disks"]] == [SourceImage.REMOVED]
    assert (fields["outcomes"], codes(fields)) == ((EFFECTIVE,), [])


async def test_a_pool_that_stays_on_the_source_is_told() -> None:
    source = Source()
    source.pools = ["vmtune-x-0"]
    fields = await settled(source, Destination())
    assert [disk.source_image for disk in fields["disks"]] == [SourceImage.REMOVED]
    assert codes(fields) == ["copies_not_ended"]


@pytest.mark.parametrize(
    "state", [each for each in MigrationState if each is not MigrationState.COMPLETED]
)
async def test_nothing_is_removed_of_one_that_has_not_completed(state: MigrationState) -> None:
    source = Source()
    fields = await settled(source, Destination(), state=state)
    assert (source.asked, source.saved) == ([], [])
    assert "disks" not in fields


@pytest.mark.parametrize(
    "fields",
    [
        {"wanted": {"copy_storage": True}},
        {"wanted": {"copy_storage": True, "copy_source_images": "keep"}},
        {"trigger": Trigger.OBSERVED},
    ],
)
async def test_nor_where_nobody_has_asked_for_it(fields: dict[str, Any]) -> None:
    source = Source()
    end = await settled(source, Destination(), **fields)
    assert (source.asked, "disks" in end) == ([], False)


@pytest.mark.parametrize(
    ("destination", "disk", "why"),
    [
        (None, MADE, "it is not known where the VM is"),
        (Destination(VmState.PAUSED), MADE, "the VM is paused on b"),
        (Destination(VmState.SHUT_OFF), MADE, "on b"),
        (Destination(NotFound("gone")), MADE, "does not say whether the VM runs there"),
        (Destination(HostUnreachable("away")), MADE, "does not say whether the VM runs there"),
        (Destination(VmState.RUNNING, Disk("vdz", path="/z")), MADE, "no such disk"),
        (
            Destination(VmState.RUNNING, Disk("vda", path="/images/x", identity=HERE)),
            MADE,
            "the VM runs with it",
        ),
        (
            Destination(VmState.RUNNING, Disk("vdb", path="/images/y")),
            FOUND,
            "it is not known whether the VM runs with it",
        ),
        (
            Destination(VmState.RUNNING, Disk("vda", path="/images/other")),
            MADE,
            "it is not known whether the VM runs with it",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_images_stay_where_it_is_not_proven(
    destination: Destination | None, disk: CopiedDisk, why: str
) -> None:
    source = Source()
    fields = await settled(source, destination, disk)
    (seen,) = fields["disks"]
    assert (source.asked, seen.source_image) == ([], SourceImage.KEPT)
    assert why in seen.source_image_reason
    (outcome,) = fields["outcomes"]
    assert (outcome.status, codes(fields)) == (Status.NOT_APPLIED, ["source_image_kept"])


async def test_an_image_that_was_there_goes_where_both_files_were_seen() -> None:
    source = Source()
    there = Destination(VmState.RUNNING, Disk("vdb", path="/elsewhere", identity=THERE))
    fields = await settled(source, there, FOUND)
    assert [disk.source_image for disk in fields["disks"]] == [SourceImage.REMOVED]


@pytest.mark.parametrize(
    ("says", "state", "code"),
    [
        (("another VM names it",), SourceImage.KEPT, ["source_image_kept"]),
        ((CommandRefused("the VM is here"),), SourceImage.KEPT, ["source_image_kept"]),
        ((CommandRefused("still defined"), ""), SourceImage.REMOVED, []),
        ((OutcomeUnknown("lost"), ""), SourceImage.REMOVED, []),
        ((OutcomeUnknown("lost"), HostUnreachable("away")), SourceImage.UNKNOWN,
         ["source_image_unknown"]),
        ((OutcomeUnknown("lost"), CommandRefused("the VM is here")), SourceImage.UNKNOWN,
         ["source_image_unknown"]),
    ],
)  # fmt: skip
async def test_the_record_says_what_came_of_it(
    says: tuple[str | VmtuneError, ...], state: SourceImage, code: list[str]
) -> None:
    fields = await settled(Source(*says), Destination())
    assert [disk.source_image for disk in fields["disks"]] == [state]
    assert codes(fields) == code
    (outcome,) = fields["outcomes"]
    unknown = state is SourceImage.UNKNOWN
    assert (outcome.status is Status.UNKNOWN) == unknown


async def test_whoever_comes_after_a_kill_finishes_it() -> None:
    """At any moment: before the image has gone, and after."""
    died = Source(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        await settled(died, Destination())
    left = died.saved[-1]["disks"]
    assert [disk.source_image for disk in left] == [SourceImage.REMOVING]
    fields = await settled(Source(), Destination(), *left)
    assert [disk.source_image for disk in fields["disks"]] == [SourceImage.REMOVED]


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        (Source(), Destination(HostUnreachable("away"))),
        (Source(), Destination(VmState.PAUSED)),
        (Source(CommandRefused("the VM is here")), Destination()),
    ],
)
async def test_or_says_that_it_is_not_known(source: Source, destination: Destination) -> None:
    fields = await settled(source, destination, BEGUN)
    assert [disk.source_image for disk in fields["disks"]] == [SourceImage.UNKNOWN]
    assert codes(fields) == ["source_image_unknown"]
