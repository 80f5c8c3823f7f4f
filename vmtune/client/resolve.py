"""Records as people name them: by the first digits of their id."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from vmtune.client.connection.errors import Refused
from vmtune.client.connection.http import Client, Document, segment
from vmtune.client.ids import is_whole
from vmtune.errors import InvalidInput, NotFound

_BEGINNING = re.compile(r"[0-9a-f][0-9a-f-]{3,35}", re.IGNORECASE)
_NEWEST = 5000
_LISTED = 5
_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class Kind:
    """What has ids: the path of its records, what people call it, and the command that lists it."""

    path: str
    what: str
    lists: str

    @property
    def field(self) -> str:
        """What the command line calls it."""
        return self.what.upper()

    @property
    def several(self) -> str:
        """Several of them."""
        return f"{self.what[:-1]}ies" if self.what.endswith("y") else f"{self.what}s"

    @property
    def one(self) -> str:
        """With its article."""
        return f"{'an' if self.what[0] in 'aeiou' else 'a'} {self.what}"


MIGRATION = Kind("/migrations", "migration", "vmtune migration list")
APPLICATION = Kind("/applications", "application", "vmtune application list")
EVACUATION = Kind("/evacuations", "evacuation", "vmtune evacuation list")
RUN = Kind("/runs", "run", "vmtune bench runs")
CAMPAIGN = Kind("/campaigns", "campaign", "vmtune bench campaign list")
STUDY = Kind("/studies", "study", "vmtune tune list")
BROWSER = Kind("/browsers", "browser", "vmtune token browsers")


def is_beginning(text: str) -> bool:
    """Whether *text* may be the beginning of an id."""
    return bool(_BEGINNING.fullmatch(text))


def resolve(client: Client, text: str, kind: Kind) -> str:
    """The id of the record whose id begins with *text*; a whole id is taken as it is.

    :raise InvalidInput: *text* is no beginning of an id, or of several.
    :raise NotFound: none of the newest 5000 has such an id.
    """
    return text.lower() if is_whole(text) else str(find(client, text, kind)["id"])


def named(client: Client, name: str, kind: Kind) -> Document:
    """The record with this name, id or unique beginning of an id.

    :raise NotFound: there is none.
    """
    try:
        return client.get(f"{kind.path}/{segment(name)}")
    except Refused as error:
        if error.status != _NOT_FOUND or not is_beginning(name):
            raise
        return client.get(f"{kind.path}/{resolve(client, name, kind)}")


def find(client: Client, text: str, kind: Kind) -> Document:
    """The record, as it is listed, whose id begins with *text*; raises as :func:`resolve`."""
    if not is_beginning(text):
        raise InvalidInput(
            f"{text[:60]!r} is not the id of {kind.one}",
            field=kind.field,
            remedy=f"give an id, or at least its first 4 digits; `{kind.lists}` lists them",
        )
    newest = islice(client.items(kind.path), _NEWEST)
    found = [row for row in newest if str(row["id"]).startswith(text.lower())]
    if not found:
        raise NotFound(
            f"no {kind.what} has an id that starts with {text}",
            field=kind.field,
            remedy=f"`{kind.lists}` lists them",
        )
    if len(found) > 1:
        ids = ", ".join(str(row["id"]) for row in found[:_LISTED])
        raise InvalidInput(
            f"{len(found)} {kind.several} have ids that start with {text}",
            field=kind.field,
            remedy=f"give more digits: {ids}",
        )
    return found[0]
