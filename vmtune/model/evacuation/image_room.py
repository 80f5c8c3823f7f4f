"""The room that VMs of one evacuation take for the images of their local disks, all together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from vmtune import units
from vmtune.model.evacuation.evacuation import EvacuationVm, EvacuationVmState
from vmtune.model.host.disks import DiskRoom
from vmtune.units import Unit


@dataclass(slots=True)
class ImageRoom:
    """What VMs that have a destination take there, by host and file system: each one's preflight
    sees the room before any of them has come."""

    _taken: dict[tuple[str, str], int] = field(default_factory=dict)

    def placed(self, vm: EvacuationVm, rooms: Sequence[DiskRoom]) -> EvacuationVm:
        """*vm* where its images fit next to those of the VMs before it; else blocked.

        :param rooms: what they take at its destination.
        """
        if vm.state.ended:
            return vm
        for room in rooms:
            taken = self._taken.get((vm.destination, room.where), 0)
            if taken and taken + room.needed_bytes > room.free_bytes:
                left = max(0, room.free_bytes - taken)
                needs, has = (
                    units.render(each >> 20 << 20, Unit.BYTES) for each in (room.needed_bytes, left)
                )
                why = (
                    f"its disks need {needs} on {vm.destination}, and {has} are left next to those "
                    "of other VMs that go there"
                )
                return replace(vm, state=EvacuationVmState.BLOCKED, reason=why)
        for room in rooms:
            key = (vm.destination, room.where)
            self._taken[key] = self._taken.get(key, 0) + room.needed_bytes
        return vm
