"""Waits for the record of a migration that another client started and that is over."""

from __future__ import annotations

import asyncio
import time
from uuid import UUID

from vmtune.model.migration.record import Trigger
from vmtune.storage import Store

_SETTLES_WITHIN_S = 30.0
_LOOK_EVERY_S = 0.05


async def settled(store: Store, vm: UUID) -> bool:
    """Wait until the record of the VM's last migration is settled: who started it knows that it is
    over before the record does, and a script calls ``virsh migrate`` and then vmtune.

    :return: False where it is vmtune's own, there is none, or it lasts.
    """
    deadline = time.monotonic() + _SETTLES_WITHIN_S
    while time.monotonic() < deadline:
        newest = (await asyncio.to_thread(store.migrations.list, vm=vm, limit=1)).items
        if not newest or newest[0].trigger is Trigger.VMTUNE:
            return False
        if newest[0].state.ended:
            return True
        await asyncio.sleep(_LOOK_EVERY_S)
    return False
