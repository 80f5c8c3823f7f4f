"""Requests with an ``Idempotency-Key``, and their answers."""

from __future__ import annotations

import secrets
from datetime import datetime

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from vmtune.model.cluster import ServiceState
from vmtune.model.idempotency import Claim, KeptAnswer
from vmtune.storage.claims import of
from vmtune.storage.database import Database, rows_met
from vmtune.storage.tables.cluster import ServiceRow
from vmtune.storage.tables.idempotency import IdempotencyRow

_AT_ONCE = 1000


class IdempotencyRepository:
    """The keys. Of several requests with the same one, one is executed: writers take turns."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._instance = secrets.token_hex(8)

    def claim(self, claim: Claim) -> KeptAnswer | str | None:
        """Take a key for a request that this service is not executing at this moment.

        :return: None to carry the request out. Else it was already: its answer, or where that was
            lost, the id or name of what it began.
        :raise InvalidInput: the key came with another request before.
        :raise OperationInProgress: another service is carrying it out.
        """
        with self._database.write(durable=False) as session:
            row = session.get(IdempotencyRow, (claim.kind.value, claim.caller, claim.key))
            if row is None:
                session.add(self._row(claim))
                return None
            if row.fingerprint != claim.fingerprint:
                raise claim.reused(row.action)
            if row.status is not None:
                return KeptAnswer(row.status, dict(row.headers or {}), row.body or "")
            if row.holder != self._holder and self._lives(session, row.holder):
                raise claim.in_progress()
            if row.subject is not None:
                return row.subject
            row.holder = self._holder
            return None

    def keep(self, claim: Claim, answer: KeptAnswer) -> None:
        """Keep the answer of a request."""
        given = {"status": answer.status, "headers": dict(answer.headers), "body": answer.body}
        with self._database.write(durable=False) as session:
            session.execute(update(IdempotencyRow).where(of(claim)).values(holder="", **given))

    def release(self, claim: Claim) -> None:
        """Give a key back whose request was refused, or failed. If it had begun something, that
        is what the same request is answered with."""
        with self._database.write(durable=False) as session:
            begun = IdempotencyRow.subject.is_not(None)
            if not rows_met(
                session, update(IdempotencyRow).where(of(claim) & begun).values(holder="")
            ):
                session.execute(delete(IdempotencyRow).where(of(claim)))

    def old(self, before: datetime) -> int:
        """How many keys would be forgotten."""
        with self._database.read() as session:
            query = select(func.count()).select_from(IdempotencyRow)
            return session.scalar(query.where(IdempotencyRow.begun_at < before)) or 0

    def forget(self, before: datetime) -> int:
        """Forget some of the keys that came before.

        :return: how many; 0 once none is left.
        """
        keys = (IdempotencyRow.caller_kind, IdempotencyRow.caller, IdempotencyRow.key)
        with self._database.write(durable=False) as session:
            old = select(*keys).where(IdempotencyRow.begun_at < before).limit(_AT_ONCE)
            rows = session.execute(old).all()
            for kind, caller, key in rows:
                row = session.get(IdempotencyRow, (kind, caller, key))
                if row is not None:
                    session.delete(row)
            return len(rows)

    def _row(self, claim: Claim) -> IdempotencyRow:
        return IdempotencyRow(
            caller_kind=claim.kind.value,
            caller=claim.caller,
            key=claim.key,
            fingerprint=claim.fingerprint,
            action=claim.action,
            begins=claim.begins.value if claim.begins else "",
            begun_at=self._database.now(),
            holder=self._holder,
        )

    @property
    def _holder(self) -> str:
        """This service, and which start of it."""
        lease = self._database.lease
        return f"{lease.epoch} {lease.service}" if lease is not None else self._instance

    def _lives(self, session: Session, holder: str) -> bool:
        """Whether another service still carries the request out."""
        epoch, _, service = holder.partition(" ")
        row = session.get(ServiceRow, service) if service else None
        return row is not None and row.state == ServiceState.RUNNING and str(row.epoch) == epoch
