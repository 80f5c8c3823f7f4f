"""Reading a VM that has just arrived."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from uuid import UUID

from vmtune.errors import NotFound, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import Reading

_ANSWERS_WITHIN_S = 10.0
_ASK_AGAIN_S = 0.2


async def read_arrived(driver: Driver, vm: UUID, names: Collection[str]) -> Mapping[str, Reading]:
    """Read tunables on the destination. On a busy host libvirt is not done with the VM at once:
    it is asked again for up to 10 s.

    :raise NotFound: the VM is not there.
    :raise VmtuneError: it could not be read all that time.
    """
    deadline = time.monotonic() + _ANSWERS_WITHIN_S
    while True:
        try:
            return await driver.read(vm, names)
        except NotFound:
            raise
        except VmtuneError:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(_ASK_AGAIN_S)
