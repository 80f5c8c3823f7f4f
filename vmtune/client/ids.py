"""Short ids: the first digits of a UUID, as many as distinguish it from its neighbours."""

from __future__ import annotations

import re
from collections.abc import Sequence

SHORT = 8
_WHOLE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def is_whole(text: str) -> bool:
    """Whether *text* is a UUID with all its digits."""
    return bool(_WHOLE.fullmatch(text))


def short(id: str) -> str:
    """Enough of a UUID to distinguish it from all others that one is likely to have; any other
    text as it is."""
    return id[:SHORT] if is_whole(id) else id


def in_text(text: str) -> str:
    """*text* with each UUID in it as short as :func:`short` makes it."""
    return _WHOLE.sub(lambda found: found[0][:SHORT], text)


def distinct(ids: Sequence[str]) -> list[str]:
    """*ids* as short as all of them are distinct, at least 8 digits."""
    whole = {id for id in ids if is_whole(id)}
    digits = SHORT
    while len({id[:digits] for id in whole}) < len(whole):
        digits += 1
    return [id[:digits].rstrip("-") if is_whole(id) else id for id in ids]
