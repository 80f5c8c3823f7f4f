"""What has happened to a VM since one of its migrations."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from vmtune.model.migration.record import Migration
from vmtune.model.plan.outcome import ApplicationState
from vmtune.storage.repositories import operations
from vmtune.storage.tables.core import ApplicationRow, MigrationRow


@dataclass(frozen=True, slots=True)
class Since:
    """What a migration's record of long ago has to leave alone.

    :param busy: an operation has the VM.
    :param migration: the VM's newest migration; None where it is this one.
    :param applied: the tunables that newer applications have set, or may have.
    """

    busy: bool
    migration: UUID | None
    applied: frozenset[str]


def since(session: Session, record: Migration) -> Since:
    """What has happened to the VM of *record* since."""
    newest = session.scalar(
        select(MigrationRow.id)
        .where(MigrationRow.vm == record.vm)
        .order_by(MigrationRow.number.desc())
        .limit(1)
    )
    applied = session.scalars(
        select(ApplicationRow.wanted).where(
            ApplicationRow.vm == record.vm,
            ApplicationRow.created_at > record.created_at,
            ApplicationRow.state.in_([ApplicationState.APPLIED, ApplicationState.UNKNOWN]),
        )
    )
    return Since(
        operations.holder(session, record.vm) is not None,
        newest if newest != record.id else None,
        frozenset(name for wanted in applied for name in wanted),
    )
