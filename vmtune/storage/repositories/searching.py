"""Search for a part of a text, and for the beginning of a UUID."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, false, func, or_
from sqlalchemy.orm import InstrumentedAttribute

_HEX = re.compile("[0-9a-f]{4,32}")


def hex_of(search: str) -> str:
    """The hexadecimal digits of what may be the beginning of a UUID; empty where it is none. Fewer
    than four would find names that nobody looks for."""
    digits = search.lower().replace("-", "")
    return digits if _HEX.fullmatch(digits) else ""


def has_part(
    search: str,
    texts: Sequence[InstrumentedAttribute[str] | InstrumentedAttribute[str | None]],
    uuid: InstrumentedAttribute[UUID] | None = None,
) -> ColumnElement[bool]:
    """Whether one of *texts* has *search* in it, whatever the case, or *uuid* begins with it. A
    text that is null has nothing in it."""
    found: list[ColumnElement[Any]] = [  # any: of a function
        func.lower(text).contains(search.lower(), autoescape=True) for text in texts
    ]
    digits = hex_of(search)
    if digits and uuid is not None:
        # between the first and the last of them: an index finds that
        found.append(uuid.between(UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))))
    return or_(false(), *found)
