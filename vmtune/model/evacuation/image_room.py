"""The room that VMs of one evacuation take for the images of their local disks, all together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from vmtune import units
from vmtune.model.evacuation.evacuation import EvacuationVm, EvacuationVmState, RoomLeft
from vmtune.model.host.disks import DiskRoom
from vmtune.units import Unit


@dataclass(slots=True)
class ImageRoom:
    """What VMs that have a destination take there, by host and file system: each one's preflight
    sees the room before any of them has come."""

    _rooms: dict[tuple[str, str], RoomLeft] = field(default_factory=dict)

    def placed(self, vm: EvacuationVm, rooms: Sequence[DiskRoom]) -> EvacuationVm:
        """*vm* where its images fit next to those of the VMs before it; else blocked.

        :param rooms: what they take at its destination.
        """
        if vm.state.ended:
            return vm
        for room in rooms:
            before = self._rooms.get((vm.destination, room.where))
            taken = before.needed_bytes if before is not None else 0
            if taken and taken + room.needed_bytes > room.available_bytes:
                left = max(0, room.available_bytes - taken)
                needs, has = (
                    units.render(each >> 20 << 20, Unit.BYTES) for each in (room.needed_bytes, left)
                )
                why = (
                    f"its disks need {needs} on {vm.destination}, and {has} are left next to those "
                    "of other VMs that go there"
                )
                return replace(vm, state=EvacuationVmState.BLOCKED, reason=why)
        for room in rooms:
            self._take(vm.destination, room)
        return vm

    def _take(self, host: str, room: DiskRoom) -> None:
        before = self._rooms.get((host, room.where))
        taken = before.needed_bytes if before is not None else 0
        folders = {*room.folders, *(before.folders if before is not None else ())}
        self._rooms[host, room.where] = RoomLeft(
            host,
            tuple(sorted(folders)),
            room.free_bytes,
            room.promised_bytes,
            taken + room.needed_bytes,
        )

    def left(self) -> tuple[RoomLeft, ...]:
        """What all of them leave, by host and folder."""
        return tuple(sorted(self._rooms.values(), key=lambda room: (room.host, room.folders)))
