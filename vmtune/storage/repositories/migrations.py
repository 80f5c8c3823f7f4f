"""Live migrations: the durable record of each. (vmtune.migrations is another thing: the
revisions of the database's schema.)"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Unpack
from uuid import UUID, uuid4

from sqlalchemy import Row, bindparam, func, select, tuple_, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from vmtune.documents.dataclass_json import to_json
from vmtune.errors import Conflict, DuplicateName, TooLate
from vmtune.model.access.scopes import EVERYTHING, Reach
from vmtune.model.migration.admission import Slot
from vmtune.model.migration.controller_record import ReaperReport, ReaperRound, StepRecord
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.downtime import downtime_kept
from vmtune.model.migration.open_migration import OpenMigration
from vmtune.model.migration.record import (
    AbortState,
    Migration,
    MigrationFields,
    MigrationSort,
    MigrationState,
    Sample,
    Trigger,
)
from vmtune.model.migration.stated_intent import StatedIntent
from vmtune.model.migration.steps import Step, dump_steps, load_steps
from vmtune.model.plan.changes import Change
from vmtune.model.tunables.tunable import Value
from vmtune.storage.columns import storable
from vmtune.storage.mapping import Mapper, Stored
from vmtune.storage.paging import Page, check_limit, make_cursor, page, read_cursor
from vmtune.storage.repositories import migration_queue as slots
from vmtune.storage.repositories import operations
from vmtune.storage.repositories.migration_series import MigrationSeries, no_migration
from vmtune.storage.repositories.operations import Operation
from vmtune.storage.repositories.reach import within
from vmtune.storage.repositories.searching import has_part
from vmtune.storage.repositories.since import Since, since
from vmtune.storage.series.chunks import ROUNDS, SAMPLES
from vmtune.storage.tables.core import (
    INTENT_BROKEN,
    HostRow,
    JsonObject,
    MigrationRow,
    OperationRow,
    VmRow,
)
from vmtune.storage.worded_steps import load_step_records


@dataclass(frozen=True, slots=True)
class StoredSamples:
    """A migration and its samples.

    :param version: of all its samples: equal versions, equal samples. They are only added to, and
        thinned or dropped once, of which the record tells.
    :param taken: None where they are known.
    """

    of: Migration
    version: Hashable
    taken: tuple[Sample, ...] | None


def _without_rounds(report: ReaperReport | None) -> JsonObject | None:
    """The report as it is stored: its rounds are in chunks."""
    if report is None:
        return None
    stored: JsonObject = to_json(replace(report, rounds=()))
    del stored["rounds"]
    return stored


_S = MigrationState
_ENDS = frozenset(state for state in MigrationState if state.ended)
TRANSITIONS: Mapping[MigrationState, frozenset[MigrationState]] = {
    _S.QUEUED: frozenset({_S.PREPARING, _S.FAILED, _S.CANCELLED, _S.UNKNOWN}),
    _S.PREPARING: frozenset({_S.STARTING, _S.FAILED, _S.CANCELLED, _S.UNKNOWN}),
    # A small VM can be there before anybody saw the migration active.
    _S.STARTING: frozenset({_S.ACTIVE, _S.POSTCOPY_PAUSED}) | _ENDS,
    _S.ACTIVE: frozenset({_S.POSTCOPY_PAUSED}) | _ENDS,
    _S.POSTCOPY_PAUSED: frozenset({_S.ACTIVE}) | _ENDS,
    _S.UNKNOWN: _ENDS - {_S.UNKNOWN},
    _S.COMPLETED: frozenset(),
    _S.FAILED: frozenset(),
    _S.CANCELLED: frozenset(),
}
"""Which state may follow which. Any state may be recorded again: steps can run twice."""
assert set(TRANSITIONS) == set(MigrationState), "a state without its followers"
_MAP = Mapper(
    Migration,
    MigrationRow,
    steps=Stored(dump_steps, load_steps),
    step_records=Stored(load=load_step_records),
    failure=Stored(storable),
    reaper=Stored(_without_rounds),
)
_COLUMNS = MigrationRow.__table__.columns
"""Read without an ORM object for each row, which is slow for a page."""
_SORTS: Mapping[MigrationSort, InstrumentedAttribute[Any]] = {  # any: text or number
    MigrationSort.OLDEST: MigrationRow.number,
    MigrationSort.VM: MigrationRow.vm_name,
    MigrationSort.DOWNTIME: MigrationRow.downtime_ms,
    MigrationSort.TOTAL_TIME: MigrationRow.total_time_ms,
}
_BY_ID = select(*_COLUMNS).where(MigrationRow.id == bindparam("id"))


class MigrationRepository(MigrationSeries):
    """The migrations, by UUID; lists give the newest first."""

    def begin(
        self,
        *,
        vm: UUID,
        vm_name: str,
        source: str,
        destination: str,
        trigger: Trigger = Trigger.VMTUNE,
        profile: str = "",
        revision: int = 0,
        wanted: Mapping[str, Value] | None = None,
        overrides: Sequence[str] = (),
        state: MigrationState = MigrationState.QUEUED,
        journal: Sequence[Change] = (),
        started_at: datetime | None = None,
        active_at: datetime | None = None,
        steps: Sequence[Step] = (),
        id: UUID | None = None,
        priority: int = 0,
        intent: StatedIntent | None = None,
        copies: bool = False,
    ) -> Migration:
        """Record the intent before anything is done. Takes the VM, and a place in the queue.

        :param destination: empty if not known, or not yet.
        :param state: not final; an observed migration begins as starting.
        :param id: given by a caller that must know it beforehand; else a new one.
        :param priority: among queued migrations; higher goes first.
        :param copies: it copies disks.
        :raise OperationInProgress: the VM has an open application or migration.
        :raise DuplicateName: there is a migration with that *id*.
        """
        assert not state.ended, "a migration cannot begin with its end"
        with self._database.write() as session:
            now = self._database.now()
            row = _MAP.row(
                Migration(
                    id=id or uuid4(),
                    vm=vm,
                    vm_name=vm_name,
                    source=source,
                    destination=destination,
                    trigger=trigger,
                    profile=profile,
                    revision=revision,
                    wanted=wanted or {},
                    overrides=tuple(overrides),
                    state=state,
                    created_at=now,
                    journal=tuple(journal),
                    started_at=started_at,
                    active_at=active_at,
                    steps=tuple(steps),
                    intent=intent,
                )
            )
            if id is not None and _find(session, id) is not None:
                raise DuplicateName(f"there is a migration {id} already", field="id")
            operations.take(session, vm, Operation.MIGRATION, row.id, now, self._database.service)
            session.add(row)
            session.flush()
            runs = state is not MigrationState.QUEUED
            slot = Slot(row.number, row.id, source, destination, priority, runs, copies=copies)
            slots.take(session, slot)
            return _MAP.record(row)

    def update(self, id: UUID, **fields: Unpack[MigrationFields]) -> Migration:
        """Record what happened; None keeps a field.

        A final state releases the VM, sets the end time if *ended_at* does not, and answers a
        requested abort: the request may have come after the caller had read the record.

        :raise NotFound: there is no such migration.
        :raise Conflict: *state* cannot follow the present one.
        """
        with self._database.write() as session:
            row = _row(session, id)
            state, destination = fields.pop("state", None), fields.pop("destination", None)
            if state is not None:
                self._enter(session, row, state)
            if destination and destination != row.destination:
                row.destination = destination
                slots.redirect(session, row.number, destination)
            if fields.get("disks"):
                slots.note_copies(session, row.number)
            _MAP.change(row, fields)
            session.flush()
            if state is MigrationState.COMPLETED and row.destination:
                self._arrived(session, row)
            record = _MAP.record(row)
            _note_totals(row, record)
            return record

    def note_disks(self, id: UUID, disks: Sequence[CopiedDisk]) -> None:
        """Record how far the copies of disks are. Every second of a copy: it does not wait until it
        is on disk, for which a file system may write all first that was copied onto it.

        :raise NotFound: there is no such migration.
        """
        with self._database.write(durable=False) as session:
            _MAP.change(_row(session, id), {"disks": tuple(disks)})

    def note_step(self, id: UUID, record: StepRecord, undo: Sequence[Change] = ()) -> Migration:
        """Record a step: before it is done, and afterwards its effect.

        A record replaces an earlier one of the same step whose effect was not known.
        :param undo: changes that restore what the step changes; journaled ones stay.
        :raise NotFound: there is no such migration.
        """
        with self._database.write() as session:
            row = _row(session, id)
            # QEMU's words are not ours to refuse.
            noted = replace(record, detail=storable(record.detail))
            records = list(load_step_records(row.step_records))
            pending = [n for n, known in enumerate(records) if _still_open(known, record)]
            if pending:
                records[pending[-1]] = noted
            else:
                records.append(noted)
            row.step_records = to_json(records)
            known_changes = {(item["tunable"], item["owner"]) for item in row.journal}
            fresh = [c for c in undo if (c.tunable, c.owner) not in known_changes]
            row.journal = [*row.journal, *to_json(fresh)]
            session.flush()
            return _MAP.record(row)

    def request_abort(self, id: UUID) -> Migration:
        """Record the request to abort. Idempotent.

        :raise NotFound: there is no such migration.
        :raise TooLate: it has ended, or can no longer be aborted.
        """
        with self._database.write() as session:
            row = _row(session, id)
            if row.abort == AbortState.TOO_LATE or _S(row.state).ended:
                why = (
                    f"has ended: it is {row.state}" if _S(row.state).ended else "has switched over"
                )
                raise TooLate(f"migration {id} {why}", field="migration")
            if row.abort == AbortState.NONE:
                row.abort = AbortState.REQUESTED
                session.flush()
            return _MAP.record(row)

    def get(self, id: UUID) -> Migration:
        """The migration of that UUID.

        :raise NotFound: there is none.
        """
        with self._database.read() as session:
            return _MAP.record(_plain_row(session, id))

    def list(
        self,
        vm: UUID | None = None,
        host: str | None = None,
        state: MigrationState | None = None,
        profile: str | None = None,
        after: str | None = None,
        limit: int = 100,
        reach: Reach = EVERYTHING,
        search: str = "",
        downtime_exceeded: bool | None = None,
        intent_broken: bool | None = None,
        sort: MigrationSort = MigrationSort.NEWEST,
    ) -> Page[Migration]:
        """Migrations in the order of *sort*.

        :param host: its source or its destination.
        :param search: a part of the VM's name, the profile's or a host's, or the beginning of the
            migration's UUID or of the VM's.
        """
        by = _SORTS[sort.by]
        keys = (by,) if sort.by is MigrationSort.OLDEST else (by, MigrationRow.number)
        order = [each.desc() if sort.backwards else each.asc() for each in keys]
        query = select(*_COLUMNS).order_by(*order).limit(check_limit(limit) + 1)
        query = query.where(
            *within(reach, (MigrationRow.source, MigrationRow.destination), MigrationRow.vm)
        )
        if vm is not None:
            query = query.where(MigrationRow.vm == vm)
        if host is not None:
            query = query.where((MigrationRow.source == host) | (MigrationRow.destination == host))
        if state is not None:
            query = query.where(MigrationRow.state == state)
        if profile is not None:
            query = query.where(MigrationRow.profile == profile)
        if search:
            texts = MigrationRow.vm_name, MigrationRow.profile, MigrationRow.source
            part = has_part(search, (*texts, MigrationRow.destination), MigrationRow.id)
            query = query.where(part | has_part(search, (), MigrationRow.vm))
        if downtime_exceeded is not None:
            query = query.where(MigrationRow.downtime_exceeded == downtime_exceeded)
        if intent_broken is not None:
            query = query.where(INTENT_BROKEN if intent_broken else ~INTENT_BROKEN)
        listing = "migrations" if sort is MigrationSort.NEWEST else f"migrations {sort}"
        kinds = [str if by is MigrationRow.vm_name else int for by in keys]
        if after is not None:
            seen = tuple_(*read_cursor(listing, after, *kinds))
            query = query.where(tuple_(*keys) < seen if sort.backwards else tuple_(*keys) > seen)
        with self._database.read() as session:
            rows = session.execute(query).all()
            return page(
                rows,
                limit,
                _MAP.record,
                lambda row: make_cursor(listing, *(getattr(row, each.key) for each in keys)),
            )

    def open_of(self, vms: Collection[UUID]) -> Mapping[UUID, OpenMigration]:
        """Of these VMs, the migrations that have not ended, by VM."""
        query = (
            select(OperationRow.vm, MigrationRow.id, MigrationRow.state)
            .join(MigrationRow, MigrationRow.id == OperationRow.operation)
            .where(OperationRow.kind == Operation.MIGRATION, OperationRow.vm.in_(vms))
        )
        with self._database.read() as session:
            rows = session.execute(query)
            return {vm: OpenMigration(id, MigrationState(state)) for vm, id, state in rows}

    def unfinished(self) -> tuple[Migration, ...]:
        """Those that have not ended, oldest first: to be resumed after a restart."""
        return self._in_states(*(state for state in MigrationState if not state.ended))

    def copying_to(self, host: str) -> Mapping[UUID, tuple[CopiedDisk, ...]]:
        """The disks that migrations which have not ended copy to a host, by VM."""
        states = [state for state in MigrationState if not state.ended]
        query = select(MigrationRow).where(
            MigrationRow.state.in_(states),
            MigrationRow.destination == host,
            MigrationRow.disks.is_not(None),
        )
        with self._database.read() as session:
            return {row.vm: _MAP.record(row).disks for row in session.scalars(query)}

    def unsettled(self) -> tuple[Migration, ...]:
        """Those whose end is unknown, oldest first: to be checked again."""
        return self._in_states(MigrationState.UNKNOWN)

    def since(self, record: Migration) -> Since:
        """What has happened to a migration's VM since, which it has to leave alone."""
        with self._database.read() as session:
            return since(session, record)

    def with_samples(
        self, id: UUID, after_ms: int = -1, limit: int | None = None, known: Hashable = None
    ) -> StoredSamples:
        """The migration with its samples, as :meth:`get` and :meth:`samples` give them.

        :param known: the version of those that are known; where it is still theirs, they are not
            read again.
        :raise NotFound: there is no such migration.
        """
        with self._database.read() as session:
            row = _plain_row(session, id)
            version = (
                *(row.samples_kept, row.samples_thinned_s),
                *SAMPLES.extent(session, row.number),
            )
            taken = None
            if version != known:
                taken = tuple(SAMPLES.read(session, row.number, after_ms, limit))
        return StoredSamples(_MAP.record(row), version, taken)

    def add_rounds(
        self, id: UUID, done: Sequence[ReaperRound], report: ReaperReport | None = None
    ) -> None:
        """Add rounds of the reaper, in the order in which they were done, and its report so far.

        Only the newest of very many are kept: the report counts all.

        :raise NotFound: there is no such migration.
        """
        with self._database.write(durable=False) as session:
            row = _row(session, id)
            ROUNDS.append(session, row.number, done)
            if report is not None:
                _MAP.change(row, {"reaper": report})

    def counts(self) -> Mapping[MigrationState, int]:
        """How many migrations are in each state."""
        query = select(MigrationRow.state, func.count()).group_by(MigrationRow.state)
        with self._database.read() as session:
            found = {state: number for state, number in session.execute(query)}
        return {state: found.get(state, 0) for state in MigrationState}

    def _enter(self, session: Session, row: MigrationRow, state: MigrationState) -> None:
        if state != row.state and state not in TRANSITIONS[_S(row.state)]:
            raise Conflict(
                f"migration {row.id} is {row.state} and cannot become {state}",
                field="state",
                code="illegal_transition",
                remedy="read it again: it has changed in the meantime",
            )
        row.state = state
        if state.ended:
            row.ended_at = row.ended_at or self._database.now()
            if row.abort == AbortState.REQUESTED and state is not MigrationState.UNKNOWN:
                aborted = state is MigrationState.CANCELLED
                row.abort = AbortState.ABORTED if aborted else AbortState.TOO_LATE
            operations.release(session, row.vm, row.id)
            slots.release(session, row.number)

    def _arrived(self, session: Session, row: MigrationRow) -> None:
        """From now on the VM was seen last at its destination: nobody has to list it first."""
        moved = update(VmRow).where(VmRow.uuid == row.vm, VmRow.host == row.source)
        there = select(HostRow.name).where(HostRow.name == row.destination).exists()
        now = self._database.now()
        session.execute(moved.where(there).values(host=row.destination, seen_at=now))

    def _in_states(self, *states: MigrationState) -> tuple[Migration, ...]:
        query = select(MigrationRow).where(MigrationRow.state.in_(states))
        with self._database.read() as session:
            return tuple(map(_MAP.record, session.scalars(query.order_by(MigrationRow.number))))


def _note_totals(row: MigrationRow, record: Migration) -> None:
    """Keep what lists are filtered and sorted by."""
    if record.totals is not None:
        row.downtime_ms = record.totals.downtime_ms
        row.total_time_ms = record.totals.total_time_ms
    kept = downtime_kept(record)
    row.downtime_exceeded = kept is not None and kept.exceeded


def _find(session: Session, id: UUID) -> MigrationRow | None:
    return session.scalar(select(MigrationRow).where(MigrationRow.id == id))


def _row(session: Session, id: UUID) -> MigrationRow:
    row = _find(session, id)
    if row is None:
        raise no_migration(id)
    return row


def _plain_row(session: Session, id: UUID) -> Row[Any]:
    row = session.execute(_BY_ID, {"id": id}).one_or_none()
    if row is None:
        raise no_migration(id)
    return row


def _still_open(known: StepRecord, record: StepRecord) -> bool:
    """Whether *record* says what became of *known*."""
    same = (known.number, known.at_ms, known.action) == (
        record.number,
        record.at_ms,
        record.action,
    )
    return same and not known.effect.settled
