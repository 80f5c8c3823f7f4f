"""Parts of domain objects as JSON, and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from vmtune.domain.changes import Change
from vmtune.domain.migration import Totals
from vmtune.domain.outcome import Outcome, Status
from vmtune.errors import Problem
from vmtune.store.schema import JsonList, JsonObject


def dump(parts: Iterable[Change | Outcome | Problem]) -> JsonList:
    """Flat dataclasses as a list of objects."""
    return [asdict(part) for part in parts]


def changes(stored: JsonList) -> tuple[Change, ...]:
    """The journal that :func:`dump` made."""
    return tuple(Change(**item) for item in stored)


def outcomes(stored: JsonList) -> tuple[Outcome, ...]:
    """The outcomes that :func:`dump` made."""
    return tuple(Outcome(**{**item, "status": Status(item["status"])}) for item in stored)


def problems(stored: JsonList) -> tuple[Problem, ...]:
    """The problems that :func:`dump` made."""
    return tuple(Problem(**item) for item in stored)


def totals(stored: JsonObject | None) -> Totals | None:
    """The totals, where there are any."""
    return Totals(**stored) if stored is not None else None
