"""Waiting for a database that is locked, full or away: what a job does is not to be lost by it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from vmtune.errors import SchemaMismatch, SetupError

log = structlog.get_logger(__name__)

AGAIN_S = 1.0
_T = TypeVar("_T")


async def patiently(work: Callable[[], Awaitable[_T]]) -> _T:
    """Do *work*, again each second while the database cannot be used. For jobs only: who waits
    for an answer wants to hear of it instead.

    :param work: writes in one transaction, or may be repeated.
    """
    told = False
    while True:
        try:
            return await work()
        except SchemaMismatch:
            raise
        except SetupError as error:
            if not told:
                log.warning("waiting for the database", reason=error.message)
            told = True
            await asyncio.sleep(AGAIN_S)
