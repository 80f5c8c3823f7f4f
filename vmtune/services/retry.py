"""Retries while the database is locked, full or unreachable, so that a job loses no work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from vmtune.errors import SchemaMismatch, SetupError

log = structlog.get_logger(__name__)

RETRY_INTERVAL_S = 1.0
_T = TypeVar("_T")


async def retry_until_available(work: Callable[[], Awaitable[_T]]) -> _T:
    """Run *work*, and again each second while the database cannot be used. For jobs only: a
    request fails instead.

    :param work: writes in one transaction, or may be repeated.
    """
    logged = False
    while True:
        try:
            return await work()
        except SchemaMismatch:
            raise
        except SetupError as error:
            if not logged:
                log.warning("waiting for the database", reason=error.message)
            logged = True
            await asyncio.sleep(RETRY_INTERVAL_S)
