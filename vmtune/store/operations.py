"""One application or migration per VM at a time: who has the VM, in the database.

A row is added in the transaction that begins the operation and removed in the one that
ends it, so it outlives a crash for as long as the operation is unfinished.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy.orm import Session

from vmtune.errors import OperationInProgress
from vmtune.store.schema import OperationRow


class Operation(StrEnum):
    """What can have a VM to itself."""

    APPLICATION = "application"
    MIGRATION = "migration"


def take(
    session: Session, vm: UUID, kind: Operation, id: UUID, now: datetime, service: str = ""
) -> None:
    """Give *vm* to an operation. The session must be a writing one.

    :param service: which one has begun it; empty where there is one.
    :raise OperationInProgress: naming who has it.
    """
    holder = session.get(OperationRow, vm)
    if holder is not None:
        raise OperationInProgress(
            f"{holder.kind} {holder.operation} of this VM is in progress",
            field="vm",
            remedy="wait until it has ended"
            + (", or abort it" if holder.kind == Operation.MIGRATION else ""),
        )
    session.add(OperationRow(vm=vm, kind=kind, operation=id, taken_at=now, service=service))


def release(session: Session, vm: UUID, id: UUID) -> None:
    """Take *vm* from the operation, if that has it. The session must be a writing one."""
    holder = session.get(OperationRow, vm)
    if holder is not None and holder.operation == id:
        session.delete(holder)
