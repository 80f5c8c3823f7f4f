"""The audit log: who changed what and why, and who was refused.

Each entry's hash covers the entry and the hash of the one before it, so that an entry that
was altered, or taken out of the middle, is found. A user who may write the whole database could
recompute all hashes: keep a copy of the newest hash somewhere else.

Old entries may be dropped from the beginning. The hash of the last dropped entry is kept, and an
entry records it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from vmtune.model.access.scopes import Identity

FIRST = "0" * 64
"""Stands before the first entry's hash."""
MAX_REASON = 500


class Outcome(StrEnum):
    """What became of an attempt."""

    CHANGED = "changed"
    """It changed what *changes* says; committed together with this entry."""
    DONE = "done"
    """It succeeded and changed nothing that is stored."""
    REFUSED = "refused"
    """Not let in, not allowed, or not acceptable: nothing was changed by it."""
    FAILED = "failed"
    """It was begun and did not succeed; an entry before this one may say what changed."""


class AuditSort(StrEnum):
    """The order of a list of entries: ``-`` for the newest first."""

    NEWEST = "-at"
    OLDEST = "at"


@dataclass(frozen=True, slots=True)
class Change:
    """A thing before and after.

    :param before: None where it was made; *after* None where it was deleted. Of what was
        altered, only what is different.
    """

    what: str
    key: str
    before: Mapping[str, Any] | None  # any JSON
    after: Mapping[str, Any] | None  # any JSON


@dataclass(slots=True)
class Act:
    """One action of a caller, for as long as the request lasts.

    :param origin: from where: a process at the unix socket, or an address.
    :param action: what is requested, in one word: the name of the API's operation.
    :param reason: why, in the caller's own words.
    :param request: the request's id, which the service's log has too.
    :param is_open: what happens after the request has ended is the service's own doing.
    :param entries: how many entries it has made.
    """

    actor: Identity
    origin: str
    action: str
    reason: str = ""
    request: str = ""
    is_open: bool = True
    entries: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the log.

    :param subject: what it was about, such as ``vm 7d1e...``; empty where nothing is named.
    :param status: the HTTP status it was answered with; None where that came later.
    :param codes: of the problems that it was answered with.
    """

    number: int
    at: datetime
    actor: Identity
    origin: str
    action: str
    subject: str
    outcome: Outcome
    status: int | None
    reason: str
    request: str
    codes: tuple[str, ...]
    changes: tuple[Change, ...]
    hash: str = ""

    def hash_after(self, previous: str) -> str:
        """What its hash has to be where *previous* is that of the entry before it."""
        entries = [
            self.number,
            self.at.astimezone(UTC).isoformat(),
            [self.actor.kind, self.actor.id, self.actor.name],
            self.origin,
            self.action,
            self.subject,
            self.outcome,
            self.status,
            self.reason,
            self.request,
            list(self.codes),
            [[c.what, c.key, c.before, c.after] for c in self.changes],
        ]
        text = json.dumps(entries, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()


CUT = "audit"
"""The subject of the entry that records a cut."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Up to where old entries were dropped.

    :param number: the last one that was; *hash* is its hash, from which the next one follows.
    """

    number: int
    hash: str

    def change(self, first: int) -> Change:
        """The entry that records the cut, so that the remaining entries vouch for it.

        :param first: the first entry that was dropped with it.
        """
        return Change(CUT, f"{first} to {self.number}", {"newest": self.hash}, None)

    def is_logged_by(self, entry: Entry) -> bool:
        """Whether *entry* records it."""
        return entry.number > self.number and any(
            change.what == CUT
            and change.key.endswith(f" to {self.number}")
            and change.before == {"newest": self.hash}
            for change in entry.changes
        )


NO_CUT = Cut(0, FIRST)
"""Nothing was dropped yet."""


@dataclass(frozen=True, slots=True)
class Integrity:
    """Whether the log is as it was written.

    :param entries: how many follow from each other, those that were dropped not counted.
    :param newest: the newest entry's hash: keep it elsewhere to find out later whether all were
        recomputed.
    :param broken_at: the number of the first entry that does not follow from the one before;
        of the last one that was dropped, if no entry records that.
    :param dropped: how many were dropped, being old.
    """

    entries: int
    newest: str
    broken_at: int | None = None
    dropped: int = 0


def check(entries: Iterable[Entry], cut: Cut = NO_CUT) -> Integrity:
    """Whether *entries*, all of them after the *cut*, follow from each other."""
    number, hash = cut.number, cut.hash
    is_told = cut == NO_CUT
    for entry in entries:
        if entry.number != number + 1 or entry.hash != entry.hash_after(hash):
            return Integrity(number - cut.number, hash, entry.number, cut.number)
        number, hash = entry.number, entry.hash
        is_told = is_told or cut.is_logged_by(entry)
    return Integrity(number - cut.number, hash, None if is_told else cut.number, cut.number)
