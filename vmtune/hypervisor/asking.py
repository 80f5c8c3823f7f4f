"""In which order one thing is asked beside another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

_T = TypeVar("_T")
_ASKED_WITHIN_S = 0.001


async def once_asked(begin: Callable[[], Awaitable[_T]]) -> _T:
    """What is done beside questions to QEMU, begun when those are on their way.

    QEMU takes longest to answer. A thread that begins before the questions are sent takes the
    interpreter from the event loop at each of its turns, for up to 5 ms
    (:func:`sys.setswitchinterval`), and delays them by its own work.
    """
    await asyncio.sleep(_ASKED_WITHIN_S)
    return await begin()
