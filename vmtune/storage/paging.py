"""Pages of a list, and the cursors that continue them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

from vmtune.errors import InvalidInput
from vmtune.storage.columns import storable

T = TypeVar("T")
Row = TypeVar("Row")
Key = str | int | UUID

_NO_NUMBER = 1 << 63  # numbers in the database are smaller
MOST = 1000
"""Most items on one page."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items of a list.

    :param next: what to pass as *after* for the items that follow; None at the end.
        Opaque: only the list that made it can read it.
    """

    items: tuple[T, ...]
    next: str | None = None


def check_limit(limit: int) -> int:
    """*limit* if a page can have that many items.

    :raise InvalidInput: it is not within 1 to 1000.
    """
    if not 1 <= limit <= MOST:
        raise InvalidInput(
            f"{limit} items are no page", field="limit", remedy=f"ask for 1 to {MOST}"
        )
    return limit


def make_cursor(listing: str, *keys: Key) -> str:
    """Where a page of *listing* ended, as text that fits into a URL."""
    plain = [str(key) if isinstance(key, UUID) else key for key in keys]
    return base64.urlsafe_b64encode(json.dumps([listing, *plain]).encode()).decode().rstrip("=")


def read_cursor(listing: str, cursor: str, *kinds: type[Key]) -> list[Key]:
    """The keys in a cursor.

    :param kinds: the type of each key.
    :raise InvalidInput: it was not made by :func:`make_cursor` for this listing.
    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        name, *keys = json.loads(base64.b64decode(padded, b"-_", validate=True))
        if name == listing:
            return [_key(key, kind) for key, kind in zip(keys, kinds, strict=True)]
    except (TypeError, ValueError, RecursionError):  # no base64, no JSON, other keys
        pass
    raise InvalidInput(
        "it does not continue this list",
        field="after",
        code="invalid_cursor",
        remedy="leave it out to start from the beginning, or pass what a page gave as next",
    )


def _key(stored: object, kind: type[Key]) -> Key:
    if kind is UUID and isinstance(stored, str):
        return UUID(stored)
    if kind is str and isinstance(stored, str) and storable(stored) == stored:
        return stored
    if kind is int and type(stored) is int and 0 <= stored < _NO_NUMBER:
        return stored
    raise ValueError(f"no {kind.__name__}")


def page(
    rows: Sequence[Row], limit: int, item: Callable[[Row], T], cursor: Callable[[Row], str]
) -> Page[T]:
    """The page of *limit* items from a query for one row more."""
    shown = rows[:limit]
    following = cursor(shown[-1]) if len(rows) > limit else None
    return Page(tuple(item(row) for row in shown), following)
