"""Profiles, their immutable revisions, and which profile a VM gets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from vmtune.errors import Conflict, InvalidInput
from vmtune.model.migration.intent import Intent
from vmtune.model.migration.steps import Step
from vmtune.model.tunables.tunable import Value

_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
_RESERVED = frozenset({"check"})  # POST /profiles/check
_LABEL_KEY = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9._:-]{0,63}")


@dataclass(frozen=True, slots=True)
class Revision:
    """One immutable state of a profile. Numbers count from 1 within the profile.

    :param steps: what is done when a migration does not end.
    :param intent: what migrations with the profile have to keep; None for none.
    """

    profile: str
    number: int
    values: Mapping[str, Value]
    note: str
    created_at: datetime
    steps: tuple[Step, ...] = ()
    intent: Intent | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """A named set of tunable values, seen at its current revision."""

    name: str
    description: str
    current: Revision
    created_at: datetime

    @property
    def etag(self) -> str:
        """What If-Match has to name for a change to be accepted."""
        return f'"{self.current.number}"'


class Target(StrEnum):
    """What an assignment points at, most specific first: that is the precedence."""

    VM = "vm"
    SELECTOR = "selector"
    HOST = "host"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Assignment:
    """*profile* is for the VM, label selector or host named *key*; the default has no key.

    :param intent: what migrations of these VMs have to keep, instead of the profile's intent; None
        for that.
    """

    id: int
    target: Target
    key: str
    profile: str
    created_at: datetime
    intent: Intent | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """A VM as assignments see it."""

    vm: UUID
    host: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Which assignment won for a VM, and those it was chosen over."""

    winner: Assignment | None
    candidates: tuple[Assignment, ...]

    @property
    def reason(self) -> str:
        """The choice in one sentence."""
        if self.winner is None:
            return "no assignment names this VM, its labels or its host, and there is no default"
        beaten = len(self.candidates) - 1
        over = f", ahead of {beaten} less specific" if beaten else ""
        return f"{describe(self.winner)} chose {self.winner.profile}{over}"


def describe(assignment: Assignment) -> str:
    """An assignment in words: ``the assignment to host rack7``."""
    if assignment.target is Target.DEFAULT:
        return "the default assignment"
    return f"the assignment to {assignment.target.value} {assignment.key}"


def check_name(name: str, what: str = "name") -> str:
    """*name* if it can name a profile or a host.

    :raise InvalidInput: otherwise.
    """
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{name[:70]!r} is not a valid name",
            field=what,
            remedy="use 1 to 63 lower-case letters, digits, dots, dashes or underscores, "
            "with a letter or digit at both ends",
        )
    return name


def check_profile_name(name: str) -> str:
    """*name* if it can name a profile.

    :raise InvalidInput: otherwise.
    """
    if name in _RESERVED:
        raise InvalidInput(
            f"{name!r} cannot name a profile: it is a path of the API",
            field="name",
            remedy="choose another name",
        )
    return check_name(name)


def parse_selector(text: str) -> dict[str, str]:
    """``tier=db,zone=a`` as a mapping; a VM matches when it has all of the labels.

    :raise InvalidInput: naming the part that is no ``key=value``.
    """
    labels: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if not equals or not _LABEL_KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
            raise InvalidInput(
                f"{part.strip()[:80]!r} is not a label selector",
                field="key",
                remedy="write key=value pairs joined by commas, such as tier=db,zone=a",
            )
        if labels.setdefault(key, value) != value:
            raise InvalidInput(f"{key} is given two values", field="key")
    return labels


def check_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """*labels* if each key and value can be a label.

    :raise InvalidInput: naming the first that cannot.
    """
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
            raise InvalidInput(
                f"{key[:64]!r}: {value[:64]!r} is not a label",
                field=f"labels.{key[:64]}",
                remedy="use letters, digits, dots, dashes and underscores, 63 at most",
            )
    return dict(labels)


def matches(assignment: Assignment, subject: Subject) -> bool:
    """Whether *assignment* is for *subject*."""
    match assignment.target:
        case Target.VM:
            return assignment.key == str(subject.vm)
        case Target.SELECTOR:
            wanted = parse_selector(assignment.key)
            return wanted.items() <= dict(subject.labels).items()
        case Target.HOST:
            return assignment.key == subject.host
        case Target.DEFAULT:
            return True


_PRECEDENCE = {target: rank for rank, target in enumerate(Target)}


def explain(assignments: Iterable[Assignment], subject: Subject) -> Explanation:
    """Which assignment *subject* gets: VM before label selector before host before default.

    :raise Conflict: two selectors match that name different profiles. Ties are refused
        when they are written, but labels may change afterwards.
    """
    candidates = sorted(
        (a for a in assignments if matches(a, subject)),
        key=lambda a: (_PRECEDENCE[a.target], a.id),
    )
    if not candidates:
        return Explanation(None, ())
    winner = candidates[0]
    rivals = {a.profile for a in candidates if a.target is winner.target}
    if len(rivals) > 1:
        raise Conflict(
            f"{describe(winner)} is tied with another: {', '.join(sorted(rivals))}",
            field="assignment",
            code="tied_assignments",
            remedy="assign a profile to the VM itself, or change one selector or the labels",
        )
    return Explanation(winner, tuple(candidates))


def could_tie(first: str, second: str) -> bool:
    """Whether some VM could match both selectors, so that neither would win."""
    one, two = parse_selector(first), parse_selector(second)
    return all(two.get(key, value) == value for key, value in one.items())
