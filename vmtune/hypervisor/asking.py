"""In which order one thing is asked beside another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

_T = TypeVar("_T")
_TURNS = 8
"""After how many turns of the event loop the questions of a plan have been sent: they take six."""


async def once_asked(begin: Callable[[], Awaitable[_T]]) -> _T:
    """What is done beside questions to QEMU, begun when those are on their way.

    QEMU takes longest to answer. A thread that begins before the questions are sent takes the
    interpreter from the event loop at each of its turns, for up to 5 ms
    (:func:`sys.setswitchinterval`), and delays them by its own work.
    """
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    return await begin()


@asynccontextmanager
async def done_meanwhile(begin: Callable[[], Awaitable[None]] | None) -> AsyncIterator[None]:
    """Do something during the block. It has ended when the block has, also where that raises; what
    the block raises comes first.

    :param begin: None for nothing.
    """
    if begin is None:
        yield
        return

    async def all_of_it() -> None:
        await begin()

    doing = asyncio.create_task(all_of_it())
    try:
        yield
    finally:
        await asyncio.gather(doing, return_exceptions=True)
    await doing
