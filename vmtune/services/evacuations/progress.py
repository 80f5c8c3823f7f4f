"""The progress of an evacuation, as events."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from vmtune.model.evacuation.evacuation import Evacuation, EvacuationVm, EvacuationVmState
from vmtune.model.host.inventory import EventTopic
from vmtune.services.events import EventBus


class Progress:
    """The progress of the evacuation, and of each moving VM."""

    def __init__(self, bus: EventBus, record: Evacuation, vms: Sequence[EvacuationVm]) -> None:
        self._bus = bus
        self._id = record.id
        self._host = record.host
        self._states = {vm.vm: vm for vm in vms}
        self._begun = time.monotonic()
        self._first: float | None = None

    @property
    def known(self) -> Collection[UUID]:
        """All its VMs."""
        return self._states.keys()

    def ended(self, vm: EvacuationVm) -> None:
        """One is over, or was added."""
        self._states[vm.vm] = vm

    def publish(self, shares: Mapping[UUID, float]) -> None:
        """Publish the progress.

        :param shares: of each moving VM, the share that is done; 0 of one that waits for its turn,
            of which nothing is said.
        """
        vms = self._states.values()
        to_move = [vm for vm in vms if not (vm.state.ended and vm.migration is None)]
        total = sum(max(vm.memory_bytes, 1) for vm in to_move) or 1
        done = sum(
            max(vm.memory_bytes, 1) * (1.0 if vm.state.ended else shares.get(vm.vm, 0.0))
            for vm in to_move
        )
        share = min(done / total, 1.0)
        data = {
            "share": round(share, 4),
            "host": self._host,
            "finished": sum(vm.state.ended for vm in vms),
            "moved": sum(vm.state is EvacuationVmState.MOVED for vm in vms),
            "total": len(vms),
            "remaining_s": self._remaining_s(share),
            "vms": {str(vm): round(each, 4) for vm, each in shares.items() if each},
        }
        self._bus.progress(EventTopic.EVACUATION, self._id, data)

    def _remaining_s(self, share: float) -> float | None:
        """The estimated remaining time; None while unknown."""
        if self._first is None:
            self._first = share
        passed = time.monotonic() - self._begun
        since = share - self._first
        return round((1 - share) * passed / since) if since > 0 and passed > 1 else None


def event_data(record: Evacuation) -> dict[str, object]:
    """An evacuation's event."""
    return {"state": record.state.value, "host": record.host, "reason": record.reason}
