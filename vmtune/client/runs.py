"""Runs as people name them: by the first digits of their id."""

from __future__ import annotations

import re
from itertools import islice

from vmtune.client.connection.http import Client
from vmtune.client.ids import is_whole
from vmtune.errors import InvalidInput, NotFound

_BEGINNING = re.compile(r"[0-9a-f][0-9a-f-]{3,35}", re.IGNORECASE)
_NEWEST = 5000


def resolve(client: Client, text: str) -> str:
    """The id of the run whose id begins with *text*.

    :raise InvalidInput: *text* is no beginning of an id, or of several.
    :raise NotFound: none of the newest 5000 runs has such an id.
    """
    if is_whole(text):
        return text.lower()
    if not _BEGINNING.fullmatch(text):
        raise InvalidInput(
            f"{text[:60]!r} is not the id of a run",
            field="RUN",
            remedy="give an id, or at least its first 4 digits; `vmtune bench runs` lists them",
        )
    newest = islice(client.items("/runs"), _NEWEST)
    found = [str(row["id"]) for row in newest if str(row["id"]).startswith(text.lower())]
    if not found:
        raise NotFound(
            f"no run has an id that starts with {text}",
            field="RUN",
            remedy="`vmtune bench runs` lists them",
        )
    if len(found) > 1:
        raise InvalidInput(
            f"{len(found)} runs have ids that start with {text}",
            field="RUN",
            remedy=f"give more digits: {', '.join(found[:5])}",
        )
    return found[0]
