"""Notes what a request with an ``Idempotency-Key`` begins, in the transaction that begins it: so
that after a crash the same request finds it, and begins nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, event, update
from sqlalchemy.orm import Session, UOWTransaction

from vmtune.model.idempotency import Begun, Claim
from vmtune.storage.auditing import AuditedSession
from vmtune.storage.tables.campaigns import CampaignRow
from vmtune.storage.tables.core import (
    ApplicationRow,
    AssignmentRow,
    Base,
    HostRow,
    MigrationRow,
    ProfileRow,
    RunRow,
)
from vmtune.storage.tables.evacuations import EvacuationRow
from vmtune.storage.tables.idempotency import IdempotencyRow
from vmtune.storage.tables.studies import StudyRow
from vmtune.storage.tables.trends import ScheduleRow


@dataclass(slots=True)
class InHand:
    """The claim of the request that is being executed.

    :param is_open: until it is answered. Jobs that it started go on in a copy of its context.
    """

    claim: Claim
    is_open: bool = True


CLAIM: ContextVar[InHand | None] = ContextVar("vmtune_claim", default=None)
"""The claim of the present request; None where it has no key."""

_Key = Callable[[Any], object]  # any: a row
BEGUN: Mapping[Begun, tuple[type[Base], _Key]] = {
    Begun.APPLICATION: (ApplicationRow, lambda row: row.id),
    Begun.MIGRATION: (MigrationRow, lambda row: row.id),
    Begun.EVACUATION: (EvacuationRow, lambda row: row.id),
    Begun.RUN: (RunRow, lambda row: row.id),
    Begun.CAMPAIGN: (CampaignRow, lambda row: row.id),
    Begun.STUDY: (StudyRow, lambda row: row.id),
    Begun.HOST: (HostRow, lambda row: row.name),
    Begun.PROFILE: (ProfileRow, lambda row: row.name),
    Begun.ASSIGNMENT: (AssignmentRow, lambda row: row.id),
    Begun.SCHEDULE: (ScheduleRow, lambda row: row.name),
}
assert set(BEGUN) == set(Begun), "something begun without its table"
_KEY = "vmtune_begun"


@event.listens_for(AuditedSession, "after_flush")
def _remember(session: AuditedSession, _: UOWTransaction) -> None:
    for row in session.new:
        note_made(session, type(row), row)


def note_made(session: Session, table: type[Base], row: object) -> None:
    """Note a new row, if it is what the present request begins. One that is added past the ORM has
    its columns as attributes."""
    hand = CLAIM.get()
    if hand is None or not hand.is_open or hand.claim.begins is None:
        return
    begins, key = BEGUN[hand.claim.begins]
    if table is begins:
        session.info.setdefault(_KEY, (hand.claim, str(key(row))))


def note_begun(session: Session) -> None:
    """Note with its key what the transaction began, if it did."""
    found: tuple[Claim, str] | None = session.info.pop(_KEY, None)
    if found is not None:
        claim, subject = found
        mine = of(claim) & IdempotencyRow.subject.is_(None)
        session.execute(update(IdempotencyRow).where(mine).values(subject=subject))


def of(claim: Claim) -> ColumnElement[bool]:
    """The row of a claim."""
    return (
        (IdempotencyRow.caller_kind == claim.kind.value)
        & (IdempotencyRow.caller == claim.caller)
        & (IdempotencyRow.key == claim.key)
    )
