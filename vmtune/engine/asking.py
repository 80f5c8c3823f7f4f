"""Asking a host that is silent, or busy, for a moment."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from vmtune.errors import (
    CommandRefused,
    HostUnreachable,
    MonitorBusy,
    OutcomeUnknown,
    VmtuneError,
)
from vmtune.hypervisor.protocol import VM_BUSY

SILENCE = (HostUnreachable, MonitorBusy, OutcomeUnknown, CommandRefused)
"""What is no answer to a question: libvirt refuses those, too, whose lock it does not get."""
LOST_AFTER_S = 30.0
"""How long a source may be silent before the connection to it counts as lost. A libvirt daemon
that is ended starts again within it."""
RETRY_S = 0.2

_T = TypeVar("_T")


def is_silence(error: VmtuneError) -> bool:
    """Whether *error* is no answer to a question."""
    return isinstance(error, SILENCE)


def may_pass(error: VmtuneError) -> bool:
    """Whether a command that ended so may succeed when it is repeated; a refusal is an answer."""
    refused = isinstance(error, CommandRefused)
    return error.problems[0].code == VM_BUSY if refused else is_silence(error)


async def ask_again(
    ask: Callable[[], Awaitable[_T]],
    within_s: float,
    repeats: Callable[[VmtuneError], bool] = is_silence,
) -> _T:
    """Ask again, for *within_s* seconds, while *ask* raises what *repeats* holds of.

    :raise VmtuneError: the last one.
    """
    deadline = time.monotonic() + within_s
    while True:
        try:
            return await ask()
        except VmtuneError as error:
            if time.monotonic() > deadline or not repeats(error):
                raise
        await asyncio.sleep(RETRY_S)
