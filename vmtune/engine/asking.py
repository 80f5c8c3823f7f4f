"""Asking a host that is silent, or busy, for a moment."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from vmtune.errors import CommandRefused, HostUnreachable, MonitorBusy, OutcomeUnknown

SILENCE = (HostUnreachable, MonitorBusy, OutcomeUnknown, CommandRefused)
"""What is no answer to a question: libvirt refuses those, too, whose lock it does not get."""
LOST_AFTER_S = 30.0
"""How long a source may be silent before the connection to it counts as lost. A libvirt daemon
that is ended starts again within it."""
RETRY_S = 0.2

_T = TypeVar("_T")


async def ask_again(
    ask: Callable[[], Awaitable[_T]],
    within_s: float,
    retried: tuple[type[Exception], ...] = SILENCE,
) -> _T:
    """Ask again while *ask* raises one of *retried*, for *within_s* seconds.

    :raise VmtuneError: the last one.
    """
    deadline = time.monotonic() + within_s
    while True:
        try:
            return await ask()
        except retried:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(RETRY_S)
