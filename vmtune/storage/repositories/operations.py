"""One application, migration or benchmark per VM at a time: the VM's lock, in the database.

A row is added in the transaction that begins the operation and removed in the one that
ends it, so it outlives a crash for as long as the operation is unfinished.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import cast
from uuid import UUID

from sqlalchemy import Table, bindparam, delete, insert, select
from sqlalchemy.orm import Session

from vmtune.errors import OperationInProgress
from vmtune.storage.tables.core import OperationRow

_TABLE = cast(Table, OperationRow.__table__)
# Each application executes these twice, so they go past the ORM, which takes three times as long.
_HELD = select(_TABLE).where(_TABLE.c.vm == bindparam("its_vm"))
_TAKE = insert(_TABLE)
_RELEASE = delete(_TABLE).where(
    _TABLE.c.vm == bindparam("its_vm"), _TABLE.c.operation == bindparam("its_operation")
)


class Operation(StrEnum):
    """What can have a VM to itself."""

    APPLICATION = "application"
    MIGRATION = "migration"
    BENCHMARK = "benchmark"
    """A run that measures the VM as it runs, from its order on."""


_WAYS_OUT = {
    Operation.APPLICATION: "",
    Operation.MIGRATION: ", or abort it",
    Operation.BENCHMARK: ", or cancel it",
}
"""Remedies for each kind of holder, besides waiting."""
assert set(_WAYS_OUT) == set(Operation)


def take(
    session: Session, vm: UUID, kind: Operation, id: UUID, now: datetime, service: str = ""
) -> None:
    """Give *vm* to an operation. The session must be a writing one.

    :param service: which one has begun it; empty where there is one.
    :raise OperationInProgress: naming its holder.
    """
    connection = session.connection()
    row = connection.execute(_HELD, {"its_vm": vm}).first()
    if row is not None:
        raise OperationInProgress(
            f"{row.kind} {row.operation} of this VM is in progress",
            field="vm",
            remedy="wait until it has ended" + _WAYS_OUT[Operation(row.kind)],
        )
    held = {"vm": vm, "kind": kind, "operation": id, "taken_at": now, "service": service}
    connection.execute(_TAKE, held)


def holder(session: Session, vm: UUID) -> Operation | None:
    """The operation that has *vm*; None if it is free."""
    row = session.get(OperationRow, vm)
    return Operation(row.kind) if row is not None else None


def release(session: Session, vm: UUID, id: UUID) -> None:
    """Take *vm* from the operation, if that has it. The session must be a writing one."""
    session.connection().execute(_RELEASE, {"its_vm": vm, "its_operation": id})
