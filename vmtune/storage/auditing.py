"""Logs every change in the audit log, in the transaction that makes it.

This is automatic: session events see what a transaction adds, alters or deletes. :data:`AUDITED`
lists the tables and columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any, cast
from uuid import UUID

from sqlalchemy import Table, event, inspect, select
from sqlalchemy.orm import Session, UOWTransaction

from vmtune.model.access.audit import FIRST, MAX_REASON, Act, Change, Entry, Outcome
from vmtune.model.access.scopes import SERVICE
from vmtune.storage.columns import storable
from vmtune.storage.mapping import Mapper, stored_identity
from vmtune.storage.tables.access import AuditRow, TokenRow, WebSessionRow
from vmtune.storage.tables.campaigns import CampaignRow
from vmtune.storage.tables.core import (
    ApplicationRow,
    AssignmentRow,
    Base,
    HostRow,
    MigrationRow,
    ProfileRow,
    RevisionRow,
    RunRow,
    VmRow,
)
from vmtune.storage.tables.evacuations import EvacuationRow
from vmtune.storage.tables.studies import StudyRow
from vmtune.storage.tables.trends import FoundChangeRow, ScheduleRow
from vmtune.storage.tables.webhooks import WebhookRow

ACT: ContextVar[Act | None] = ContextVar("vmtune_act", default=None)
"""The present action and its actor; None for the service's own work."""

_TABLE = cast(Table, AuditRow.__table__)
_INSERT = _TABLE.insert()
_NEWEST = select(_TABLE.c.number, _TABLE.c.hash).order_by(_TABLE.c.number.desc()).limit(1)
ENTRIES = Mapper(Entry, AuditRow, actor=stored_identity("actor"))
_KEY = "vmtune_changes"
_MAX_TEXT = 300
_MAX_CODES = 20


@dataclass(frozen=True, slots=True)
class Audited:
    """What the log shows of a table.

    :param key: a row's key, for people to read.
    :param audited_columns: the columns that are logged; never secrets, nor what changes by itself.
    """

    what: str
    key: Callable[[Any], object]  # any: a row
    audited_columns: str

    @property
    def columns(self) -> list[str]:
        """The names in *audited_columns*."""
        return self.audited_columns.split()


AUDITED: Mapping[type[Base], Audited] = {
    HostRow: Audited(
        "host",
        lambda r: r.name,
        "uri peer_uri migration_address owner migrate_uri listen_address disks_uri "
        "maintenance_since",
    ),
    VmRow: Audited("labels", lambda r: r.uuid, "labels"),
    ProfileRow: Audited("profile", lambda r: r.name, "description current deleted_at"),
    RevisionRow: Audited("revision", lambda r: f"{r.profile} {r.number}", "values steps note"),
    AssignmentRow: Audited("assignment", lambda r: r.id, "target key profile"),
    ApplicationRow: Audited(
        "application",
        lambda r: r.id,
        "vm host profile revision wanted journal best_effort state",
    ),
    MigrationRow: Audited(
        "migration",
        lambda r: r.id,
        "vm source destination trigger profile revision wanted steps overrides abort",
    ),
    RunRow: Audited(
        "run",
        lambda r: r.id,
        "scenario values profile revision host options campaign study imported_from",
    ),
    EvacuationRow: Audited(
        "evacuation",
        lambda r: r.id,
        "host destinations order priority max_outgoing stop_after_failures profile local_disks "
        "state reason",
    ),
    CampaignRow: Audited("campaign", lambda r: r.id, "name campaign host state"),
    StudyRow: Audited("study", lambda r: r.id, "name spec host state campaign result"),
    FoundChangeRow: Audited("change", lambda r: r.id, "scenario metric since triage note"),
    ScheduleRow: Audited("schedule", lambda r: r.name, "document every_s host"),
    TokenRow: Audited(
        "token",
        lambda r: r.id,
        "name scopes hosts labels creator_kind creator expires_at revoked_at",
    ),
    WebhookRow: Audited("webhook", lambda r: r.name, "url events active old_until"),
    WebSessionRow: Audited("session", lambda r: r.token or r.subject, "name address"),
}
_ORDER = {audited.what: place for place, audited in enumerate(AUDITED.values())}
NOT_AUDITED: Mapping[str, str] = {
    "operations": "follows from applications, migrations and runs",
    "services": "counts on while they live",
    "job_orders": "follows from applications, migrations and runs",
    "slots": "follows from migrations",
    "evacuation_vms": "follows from evacuations and migrations",
    "tunings": "derived from applications and readings",
    "drift_scans": "derived from readings",
    "periodic_tasks": "says when the service last applied retention",
    "idempotency_keys": "what the requests change is logged",
    "webhook_deliveries": "follow from events",
    "webhook_outbox": "follows from events",
    "audit_cuts": "has an entry of its own",
    "forecasts": "computed and measured",
    "sample_chunks": "measured",
    "reaper_chunks": "measured",
    "disk_chunks": "measured",
    "environments": "measured",
    "run_heads": "measured",
    "run_chunks": "measured",
    "run_metrics": "measured",
    "noise_floors": "measured",
    "trials": "measured",
    "events": "published events; logged here already",
    "audit": "is the log",
}
"""The other tables, and why."""


class AuditedSession(Session):
    """A session that remembers what it changes."""

    @property
    def changes(self) -> dict[tuple[str, str], Change]:
        """Its changes so far, each record once."""
        found: dict[tuple[str, str], Change] = self.info.setdefault(_KEY, {})
        return found


@event.listens_for(AuditedSession, "after_flush")
def _remember(session: AuditedSession, _: UOWTransaction) -> None:
    for rows, describe in (
        (session.new, _made),
        (session.dirty, _altered),
        (session.deleted, _gone),
    ):
        for row in rows:
            audited = AUDITED.get(type(row))
            change = describe(row, audited) if audited else None
            if change is not None:
                _add(session.changes, change)


def note_made(session: Session, table: type[Base], row: object) -> None:
    """Note a row that is added past the ORM: *row* has its columns as attributes, in their stored
    form."""
    assert isinstance(session, AuditedSession), "the session does not write"
    change = _made(row, AUDITED[table])
    if change is not None:
        _add(session.changes, change)


def note_altered(
    session: Session,
    table: type[Base],
    key: object,
    before: Mapping[str, object],
    after: Mapping[str, object],
) -> None:
    """Note what is changed of a row past the ORM.

    :param before: columns in their stored form, those that *after* has among them.
    """
    assert isinstance(session, AuditedSession), "the session does not write"
    audited = AUDITED[table]
    changed = [name for name in audited.columns if name in after and before[name] != after[name]]
    if changed:
        old = {name: plain(before[name]) for name in changed}
        new = {name: plain(after[name]) for name in changed}
        _add(session.changes, Change(audited.what, str(key), old, new))


def _add(changes: dict[tuple[str, str], Change], change: Change) -> None:
    """Add *change* to what the transaction did to the same thing before."""
    key = change.what, change.key
    first = changes.get(key)
    if first is None:
        changes[key] = change
        return
    before = None if first.before is None else {**(change.before or {}), **first.before}
    after = None if change.after is None else {**(first.after or {}), **change.after}
    changes[key] = replace(change, before=before, after=after)


def _made(row: object, audited: Audited) -> Change | None:
    after = {name: plain(getattr(row, name)) for name in audited.columns}
    if audited.what == "labels" and not after["labels"]:
        return None  # a VM that was seen for the first time
    return Change(audited.what, str(audited.key(row)), None, after)


def _gone(row: Base, audited: Audited) -> Change | None:
    before = {name: plain(getattr(row, name)) for name in audited.columns}
    if audited.what == "labels" and not before["labels"]:
        return None
    return Change(audited.what, str(audited.key(row)), before, None)


def _altered(row: Base, audited: Audited) -> Change | None:
    before: dict[str, object] = {}
    after: dict[str, object] = {}
    for name in audited.columns:
        history = inspect(row).attrs[name].history
        if history.has_changes() and [*history.deleted] != [*history.added]:
            before[name] = plain(history.deleted[0]) if history.deleted else None
            after[name] = plain(getattr(row, name))
    return Change(audited.what, str(audited.key(row)), before, after) if after else None


def plain(value: object) -> Any:  # any JSON
    """*value* as JSON has it, without passwords."""
    match value:
        case datetime():
            return value.isoformat()
        case UUID():
            return str(value)
        case Enum():
            return value.value
        case dict():
            return {str(key): plain(one) for key, one in value.items()}
        case list() | tuple():
            return [plain(one) for one in value]
    return value


def note_changes(session: AuditedSession, clock: Callable[[], datetime]) -> None:
    """Add an entry for what the transaction changed, if it did. Its last act."""
    session.flush()
    if not session.changes:
        return
    found = session.changes.values()
    changes = tuple(sorted(found, key=lambda change: _ORDER[change.what]))
    session.info.pop(_KEY)
    act = ACT.get()
    if act is None or not act.is_open:
        act = Act(SERVICE, "", act.action if act else "", request=act.request if act else "")
    first = changes[0]
    append(session, act, clock(), Outcome.CHANGED, f"{first.what} {first.key}", changes=changes)


def append(
    session: Session,
    act: Act,
    now: datetime,
    outcome: Outcome,
    subject: str = "",
    status: int | None = None,
    codes: tuple[str, ...] = (),
    changes: tuple[Change, ...] = (),
) -> Entry:
    """Add an entry. The session must be a writing one: writers take turns, so no entry comes
    between the newest one and this one."""
    connection = session.connection()  # past the ORM, which takes three times as long
    newest = connection.execute(_NEWEST).first()
    number, previous = newest if newest is not None else (0, FIRST)
    entry = Entry(
        number + 1,
        now,
        act.actor,
        _text(act.origin),
        _text(act.action),
        _text(subject),
        outcome,
        status,
        storable(act.reason[:MAX_REASON]),
        act.request,
        tuple(dict.fromkeys(codes))[:_MAX_CODES],
        changes,
    )
    entry = replace(entry, hash=entry.hash_after(previous))
    act.entries += 1
    connection.execute(
        _INSERT,
        ENTRIES.columns(entry),
    )
    return entry


def _text(text: str) -> str:
    return storable(text[:_MAX_TEXT])
