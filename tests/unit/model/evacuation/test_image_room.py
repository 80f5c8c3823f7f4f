"""The room for the images of several VMs that go to one host."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from vmtune.model.evacuation.evacuation import EvacuationVm, EvacuationVmState, RoomLeft
from vmtune.model.evacuation.image_room import ImageRoom
from vmtune.model.host.disks import DiskRoom

GIB = 1 << 30
WAITING, BLOCKED = EvacuationVmState.WAITING, EvacuationVmState.BLOCKED


def vm(destination: str = "b", state: EvacuationVmState = WAITING) -> EvacuationVm:
    return EvacuationVm(uuid4(), "vm", 1, 0, state, destination)


def test_images_that_fit_one_by_one_may_not_fit_together() -> None:
    room = ImageRoom()
    ten = [DiskRoom("fs", 6 * GIB, 10 * GIB)]
    assert room.placed(vm(), ten).state is WAITING
    second = room.placed(vm(), ten)
    assert (second.state, second.reason) == (
        BLOCKED,
        "its disks need 6 GiB on b, and 4 GiB are left next to those of other VMs that go there",
    )
    assert room.placed(vm(), [DiskRoom("fs", 4 * GIB, 10 * GIB)]).state is WAITING


def test_other_hosts_and_other_file_systems_have_room_of_their_own() -> None:
    room = ImageRoom()
    for destination, where in (("b", "fs"), ("c", "fs"), ("b", "other")):
        assert room.placed(vm(destination), [DiskRoom(where, 6, 10)]).state is WAITING


def test_what_does_not_go_takes_no_room() -> None:
    room = ImageRoom()
    assert room.placed(vm(state=BLOCKED), [DiskRoom("fs", 6, 10)]).state is BLOCKED
    assert room.placed(vm(), [DiskRoom("fs", 6, 10), DiskRoom("full", 1, 1)]).state is WAITING
    refused = room.placed(vm(), [DiskRoom("third", 5, 9), DiskRoom("full", 1, 1)])
    assert refused.state is BLOCKED
    assert room.placed(vm(), [DiskRoom("third", 9, 9)]).state is WAITING


def test_what_is_left_is_told_by_host_and_folder() -> None:
    room = ImageRoom()
    first = DiskRoom("fs", 3 * GIB, 10 * GIB, 2 * GIB, ("/i",))
    room.placed(vm(), [first])
    room.placed(vm(), [replace(first, folders=("/j",))])
    assert room.placed(vm(), [first]).state is BLOCKED  # of 10 GiB, 2 are promised and 6 taken
    assert room.left() == (RoomLeft("b", ("/i", "/j"), 10 * GIB, 2 * GIB, 6 * GIB),)
    assert room.left()[0].left_bytes == 2 * GIB


@given(st.lists(st.integers(1, 50), max_size=20), st.integers(50, 200))
def test_never_more_is_placed_than_there_is_room_for(needs: list[int], free: int) -> None:
    room = ImageRoom()
    placed = [n for n in needs if room.placed(vm(), [DiskRoom("fs", n, free)]).state is WAITING]
    assert sum(placed) <= free
