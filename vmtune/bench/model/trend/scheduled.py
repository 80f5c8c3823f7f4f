"""Campaigns that run again and again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from vmtune.errors import InvalidInput

_UNITS_S = {"minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_EVERY = re.compile(r"\s*(?:(\d{1,4})\s*)?(minute|hour|day|week)s?\s*", re.IGNORECASE)
LEAST_S = 600
MOST_S = 90 * 86_400


@dataclass(frozen=True, slots=True)
class Schedule:
    """A campaign that is started every so often.

    :param name: its name, and the campaigns'.
    :param document: the campaign file as JSON.
    :param host: the machine whose service starts it.
    :param next_at: not before then.
    :param last: the campaign that it started last.
    :param waits: why the one that is due is not started yet, or why the last could not be.
    """

    name: str
    document: Mapping[str, Any]
    every_s: int
    host: str
    created_at: datetime
    next_at: datetime
    last: UUID | None = None
    waits: str = ""


def read_every(text: object) -> int:
    """``1 day``, ``12 hours`` or ``week`` in seconds, from ten minutes to 90 days.

    :raise InvalidInput: it is none of these.
    """
    found = _EVERY.fullmatch(text) if isinstance(text, str) else None
    seconds = int(found[1] or 1) * _UNITS_S[found[2].lower()] if found else 0
    if not LEAST_S <= seconds <= MOST_S:
        raise InvalidInput(
            f"{str(text)[:60]!r} is not an interval from 10 minutes to 90 days",
            field="every",
            code="invalid_value",
            remedy='write it like "1 day" or "12 hours"',
        )
    return seconds


def every_text(seconds: int) -> str:
    """``1 day``: what :func:`read_every` reads."""
    for unit, size in reversed(_UNITS_S.items()):
        if seconds % size == 0:
            count = seconds // size
            return f"{count} {unit}" + ("s" if count != 1 else "")
    return f"{seconds // 60} minutes"
