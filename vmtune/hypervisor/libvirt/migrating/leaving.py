"""Which VMs were just seen to leave by pre-copy: libvirt need not be asked before their QEMU is."""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import UUID

from vmtune.model.migration.record import QemuStatus, Snapshot

_KNOWN_S = 1.0
"""A migration is looked at 10 times a second or more, and what libvirt says of the VM changes only
with its end, which QEMU tells."""


class Leaving:
    """Names of VMs, each for a second.

    :param now: the time in seconds; never going back.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._until: dict[UUID, tuple[str, float]] = {}

    def name(self, vm: UUID) -> str | None:
        """Its name; None where libvirt has to be asked for its state."""
        known = self._until.get(vm)
        if known is None:
            return None
        name, until = known
        if self._now() < until:
            return name
        del self._until[vm]
        return None

    def seen(self, vm: UUID, name: str, snapshot: Snapshot | None) -> None:
        """What its QEMU has said; None where it said nothing. Only one that runs on and is sent
        neither arrives here nor is gone."""
        if snapshot is None or snapshot.sample is None or snapshot.status is not QemuStatus.ACTIVE:
            self._until.pop(vm, None)
        elif vm not in self._until:
            self._until[vm] = name, self._now() + _KNOWN_S
