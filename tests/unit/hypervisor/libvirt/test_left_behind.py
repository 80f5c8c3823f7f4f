"""Failures that every caller has stopped waiting for: asyncio has nothing to complain of."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

from vmtune.errors import HostUnreachable
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.connection import Link


async def test_a_connection_that_fails_after_its_callers_have_gone_is_no_complaint() -> None:
    complaints: list[dict[str, Any]] = []  # any: asyncio's context
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    go_on = threading.Event()

    def open_(uri: str) -> Connection:
        go_on.wait(5)
        raise HostUnreachable("it is gone")

    link = Link("qemu:///system", open_)
    caller = asyncio.create_task(link.connection())
    await asyncio.sleep(0.01)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    opening = link._opening
    assert opening is not None
    go_on.set()
    await asyncio.wait([opening])
    del opening
    link._opening = None
    gc.collect()
    await asyncio.sleep(0)
    await link.close()
    assert complaints == []
