"""Reads what concerns the whole fleet at once: its standing, what is done, what a search finds.

However long the history is: only the newest records are read, without their large columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from vmtune.bench.model.campaign.record import CampaignState
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.tune.kept import StudyState
from vmtune.model.access.scopes import EVERYTHING, Reach
from vmtune.model.evacuation.evacuation import EvacuationState, EvacuationVmState
from vmtune.model.migration.record import MigrationState, Trigger
from vmtune.model.overview import (
    LATELY,
    NEEDS_A_LOOK,
    STOPPED,
    Activity,
    ActivityKind,
    Found,
    FoundKind,
    HostLoad,
    Move,
    Standing,
    Stopped,
    TunedVm,
)
from vmtune.model.plan.outcome import ApplicationState
from vmtune.storage.database import Database
from vmtune.storage.repositories.known_vms import counts_by_tuning, within_reach
from vmtune.storage.repositories.reach import within
from vmtune.storage.repositories.searching import has_part
from vmtune.storage.tables.access import AuditRow
from vmtune.storage.tables.campaigns import CampaignRow
from vmtune.storage.tables.core import (
    INTENT_BROKEN,
    ApplicationRow,
    HostRow,
    MigrationRow,
    ProfileRow,
    RunRow,
    TuningRow,
    VmRow,
)
from vmtune.storage.tables.evacuations import EvacuationRow, EvacuationVmRow
from vmtune.storage.tables.studies import StudyRow

_MAX_MOVES = 500
_NEWEST = 5000
"""So many of the newest records a search by a part of a name looks at."""
_ENTRIES = 500
"""So many of the newest entries of the audit log tell who did something."""
_LEFT = tuple(state for state in EvacuationVmState if state.left)
_OPEN = tuple(state for state in MigrationState if not state.ended)
_MOVE = (
    MigrationRow.id,
    MigrationRow.vm,
    MigrationRow.vm_name,
    MigrationRow.source,
    MigrationRow.destination,
    MigrationRow.trigger,
    MigrationRow.state,
    MigrationRow.failure,
    MigrationRow.created_at,
    MigrationRow.active_at,
    MigrationRow.ended_at,
    MigrationRow.downtime_ms,
    MigrationRow.total_time_ms,
    MigrationRow.downtime_exceeded,
    INTENT_BROKEN.label("intent_broken"),
    MigrationRow.number,
)
_Number = InstrumentedAttribute[int]


class OverviewRepository:
    """All of it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def standing(self, now: datetime, shown: int, reach: Reach = EVERYTHING) -> Standing:
        """How the fleet stands.

        :param shown: so many VMs of each tuning state that needs attention, at the most.
        """
        with self._database.read() as session:
            moves, cut = _moves(session, now, reach)
            conditions = within_reach(reach)
            return Standing(
                tuple(_hosts(session, reach)),
                moves,
                cut,
                counts_by_tuning(session, conditions),
                {state: _tuned(session, state, shown, reach) for state in NEEDS_A_LOOK},
                _stopped(session, now, reach),
            )

    def activities(self, limit: int, reach: Reach = EVERYTHING) -> list[Activity]:
        """What runs and what began last, up to *limit* of each kind, in no order. Callers that are
        restricted see no benchmarks, as elsewhere."""
        with self._database.read() as session:
            found = [*_migrations(session, limit, reach), *_applications(session, limit, reach)]
            if not reach.labels:  # an evacuation is of all VMs of a host
                found += _evacuations(session, limit, reach)
            if reach.is_everything:
                found += [*_campaigns(session, limit), *_studies(session, limit)]
                found += _runs(session, limit)
            return found

    def actors(self, ids: Collection[UUID]) -> Mapping[UUID, str]:
        """Who began these, as far as the newest entries of the audit log tell."""
        query = select(AuditRow.subject, AuditRow.actor_name, AuditRow.actor_kind)
        query = query.order_by(AuditRow.number.desc()).limit(_ENTRIES)
        wanted = {str(id): id for id in ids}
        found: dict[UUID, str] = {}
        with self._database.read() as session:
            for row in session.execute(query):
                id = wanted.get(row.subject.rpartition(" ")[2])
                if id is not None and row.actor_kind != "service":
                    found[id] = row.actor_name  # the oldest entry is the one that began it
        return found

    def vms_of(self, subjects: Collection[tuple[str, UUID]]) -> Mapping[UUID, tuple[UUID, str]]:
        """The UUID and name of the VM that each is or is about, by its id, as far as is known.

        :param subjects: what they are, in the words of the audit log, and their ids.
        """
        by = {
            "migration": select(MigrationRow.id, MigrationRow.vm, MigrationRow.vm_name),
            "application": select(ApplicationRow.id, ApplicationRow.vm, VmRow.name).join(
                VmRow, VmRow.uuid == ApplicationRow.vm
            ),
            "vm": select(VmRow.uuid, VmRow.uuid, VmRow.name),
        }
        columns = {"migration": MigrationRow.id, "application": ApplicationRow.id, "vm": VmRow.uuid}
        found: dict[UUID, tuple[UUID, str]] = {}
        with self._database.read() as session:
            for what, query in by.items():
                ids = {id for kind, id in subjects if kind == what}
                if ids:
                    rows = session.execute(query.where(columns[what].in_(ids)))
                    found |= {id: (vm, name) for id, vm, name in rows}
        return found

    def find(self, search: str, limit: int, reach: Reach = EVERYTHING) -> list[Found]:
        """Whose name has *search* in it, whatever the case, or whose UUID begins with it: up to
        *limit* of each kind. Of migrations and runs the newest are looked at."""
        with self._database.read() as session:
            found = [*_find_vms(session, search, limit, reach)]
            found += _find_hosts(session, search, limit, reach)
            found += _find_profiles(session, search, limit)
            found += _find_migrations(session, search, limit, reach)
            if reach.is_everything:
                found += _find_campaigns(session, search, limit)
                found += _find_studies(session, search, limit)
                found += _find_runs(session, search, limit)
            return found


def _hosts(session: Session, reach: Reach) -> Iterator[HostLoad]:
    counted = select(VmRow.host, func.count()).group_by(VmRow.host)
    vms = {host: count for host, count in session.execute(counted.where(*within_reach(reach)))}
    query = select(HostRow.name, HostRow.maintenance_since).order_by(HostRow.name)
    if reach.hosts is not None:
        query = query.where(HostRow.name.in_(reach.hosts))
    for row in session.execute(query):
        yield HostLoad(row.name, row.maintenance_since, vms.get(row.name, 0))


def _moves(session: Session, now: datetime, reach: Reach) -> tuple[tuple[Move, ...], bool]:
    query = select(*_MOVE).where(*_reached(reach)).order_by(MigrationRow.number.desc())
    newest = session.execute(query.limit(_MAX_MOVES)).all()
    cut = len(newest) == _MAX_MOVES and now - newest[-1].created_at < LATELY
    looked_for = (*_OPEN, MigrationState.UNKNOWN)
    others = session.execute(query.where(MigrationRow.state.in_(looked_for)).limit(_MAX_MOVES))
    rows = {row.number: row for row in (*newest, *others)}
    return tuple(_move(rows[number]) for number in sorted(rows, reverse=True)), cut


def _stopped(session: Session, now: datetime, reach: Reach) -> tuple[Stopped, ...]:
    """A later evacuation of the same host has the say. One is of all VMs of a host: who may see
    some of them alone sees none."""
    if reach.labels:
        return ()
    row_ = EvacuationRow
    newest = select(func.max(row_.number)).group_by(row_.host)
    late = or_(row_.ended_at.is_(None), row_.ended_at >= now - LATELY)
    query = select(row_).where(row_.number.in_(newest), row_.state.in_(STOPPED), late)
    if reach.hosts is not None:
        query = query.where(row_.host.in_(reach.hosts))
    found = session.scalars(query.order_by(row_.number.desc()).limit(_MAX_MOVES)).all()
    counted = (
        select(EvacuationVmRow.evacuation, func.count())
        .where(
            EvacuationVmRow.evacuation.in_([each.number for each in found]),
            EvacuationVmRow.state.in_(_LEFT),
        )
        .group_by(EvacuationVmRow.evacuation)
    )
    left = {number: count for number, count in session.execute(counted)} if found else {}
    return tuple(
        Stopped(
            each.id, each.host, EvacuationState(each.state), each.reason,
            left.get(each.number, 0), each.ended_at or each.created_at,
        )
        for each in found
    )  # fmt: skip


def _reached(reach: Reach) -> list[ColumnElement[bool]]:
    hosts = (MigrationRow.source, MigrationRow.destination)
    return [*within(reach, hosts, MigrationRow.vm)]


def _move(row: Row[*tuple[Any, ...]]) -> Move:
    return Move(
        row.id,
        row.vm,
        row.vm_name,
        row.source,
        row.destination,
        Trigger(row.trigger),
        MigrationState(row.state),
        row.failure,
        row.created_at,
        row.active_at,
        row.ended_at,
        row.downtime_ms if row.downtime_ms >= 0 else None,
        row.total_time_ms if row.total_time_ms >= 0 else None,
        row.downtime_exceeded,
        row.intent_broken,
    )


def _tuned(session: Session, state: str, shown: int, reach: Reach) -> tuple[TunedVm, ...]:
    query = select(VmRow.uuid, VmRow.name, VmRow.host, TuningRow.since, TuningRow.differing)
    query = query.join(TuningRow, TuningRow.vm == VmRow.uuid).where(TuningRow.state == state)
    query = query.where(*within_reach(reach)).order_by(TuningRow.since.desc()).limit(shown)
    return tuple(
        TunedVm(row.uuid, row.name, row.host, row.since, tuple(row.differing))
        for row in session.execute(query)
    )


def _with_open(
    session: Session,
    query: Select[*tuple[Any, ...]],  # any: the columns that are asked for
    number: _Number,
    state: InstrumentedAttribute[str],
    open: Collection[str],
    limit: int,
) -> Sequence[Row[*tuple[Any, ...]]]:
    """The newest rows, and the newest of those whose work goes on."""
    ordered = query.order_by(number.desc()).limit(limit)
    rows = [*session.execute(ordered), *session.execute(ordered.where(state.in_(open)))]
    return list({row.id: row for row in rows}.values())


def _migrations(session: Session, limit: int, reach: Reach) -> Iterator[Activity]:
    query = select(*_MOVE).where(*_reached(reach))
    for row in _with_open(session, query, MigrationRow.number, MigrationRow.state, _OPEN, limit):
        move = _move(row)
        way = f"{move.source} to {move.destination or 'an unknown host'}"
        yield Activity(
            ActivityKind.MIGRATION, move.id, move.vm_name, way, move.state, move.state.ended,
            move.failure, move.created_at, move.ended_at,
        )  # fmt: skip


def _applications(session: Session, limit: int, reach: Reach) -> Iterator[Activity]:
    row_ = ApplicationRow
    query = select(
        row_.id, row_.vm, row_.host, row_.profile, row_.revision, row_.state, row_.created_at,
        row_.ended_at, row_.number, VmRow.name,
    ).outerjoin(VmRow, VmRow.uuid == row_.vm)  # fmt: skip
    query = query.where(*within(reach, (row_.host,), row_.vm))
    open = [state for state in ApplicationState if state.open]
    for row in _with_open(session, query, row_.number, row_.state, open, limit):
        state = ApplicationState(row.state)
        yield Activity(
            ActivityKind.APPLICATION, row.id, row.name or str(row.vm),
            f"{row.profile} r{row.revision} on {row.host}", state, not state.open,
            "", row.created_at, row.ended_at,
        )  # fmt: skip


def _evacuations(session: Session, limit: int, reach: Reach) -> Iterator[Activity]:
    row_ = EvacuationRow
    query = select(
        row_.id, row_.host, row_.state, row_.reason, row_.created_at, row_.ended_at, row_.number
    )
    if reach.hosts is not None:
        query = query.where(row_.host.in_(reach.hosts))
    open = [state for state in EvacuationState if not state.ended]
    for row in _with_open(session, query, row_.number, row_.state, open, limit):
        state = EvacuationState(row.state)
        yield Activity(
            ActivityKind.EVACUATION, row.id, row.host, "all its VMs to other hosts", state,
            state.ended, row.reason, row.created_at, row.ended_at, host=row.host,
        )  # fmt: skip


def _campaigns(session: Session, limit: int) -> Iterator[Activity]:
    row_ = CampaignRow
    query = select(
        row_.id, row_.name, row_.state, row_.reason, row_.created_at, row_.ended_at, row_.number
    )
    open = [state for state in CampaignState if not state.ended]
    for row in _with_open(session, query, row_.number, row_.state, open, limit):
        state = CampaignState(row.state)
        yield Activity(
            ActivityKind.CAMPAIGN, row.id, row.name, "campaign", state, state.ended, row.reason,
            row.created_at, row.ended_at,
        )  # fmt: skip


def _studies(session: Session, limit: int) -> Iterator[Activity]:
    row_ = StudyRow
    query = select(
        row_.id, row_.name, row_.state, row_.reason, row_.created_at, row_.ended_at, row_.number
    )
    open = [state for state in StudyState if not state.ended]
    for row in _with_open(session, query, row_.number, row_.state, open, limit):
        state = StudyState(row.state)
        yield Activity(
            ActivityKind.STUDY, row.id, row.name, "study", state, state.ended, row.reason,
            row.created_at, row.ended_at,
        )  # fmt: skip


def _runs(session: Session, limit: int) -> Iterator[Activity]:
    """Those that are no part of a campaign or a study."""
    row_ = RunRow
    query = select(
        row_.id, row_.scenario, row_.profile, row_.state, row_.failure, row_.created_at,
        row_.ended_at, row_.number,
    ).where(
        row_.campaign.is_(None), row_.study.is_(None), row_.imported_from == ""
    )  # fmt: skip
    open = [RunState.QUEUED, RunState.RUNNING]
    for row in _with_open(session, query, row_.number, row_.state, open, limit):
        yield Activity(
            ActivityKind.RUN, row.id, row.scenario, row.profile or "without a profile",
            row.state, row.state not in open, row.failure, row.created_at, row.ended_at,
        )  # fmt: skip


def _find_vms(session: Session, search: str, limit: int, reach: Reach) -> Iterator[Found]:
    query = select(VmRow.uuid, VmRow.name, VmRow.host).where(
        has_part(search, (VmRow.name,), VmRow.uuid), *within_reach(reach)
    )
    for row in session.execute(query.order_by(VmRow.name, VmRow.uuid).limit(limit)):
        yield Found(FoundKind.VM, str(row.uuid), row.name, row.host)


def _find_hosts(session: Session, search: str, limit: int, reach: Reach) -> Iterator[Found]:
    query = select(HostRow.name, HostRow.uri).where(has_part(search, (HostRow.name, HostRow.uri)))
    if reach.hosts is not None:
        query = query.where(HostRow.name.in_(reach.hosts))
    for row in session.execute(query.order_by(HostRow.name).limit(limit)):
        yield Found(FoundKind.HOST, row.name, row.name, row.uri)


def _find_profiles(session: Session, search: str, limit: int) -> Iterator[Found]:
    query = select(ProfileRow.name, ProfileRow.description).where(
        ProfileRow.deleted_at.is_(None),
        has_part(search, (ProfileRow.name, ProfileRow.description)),
    )
    for row in session.execute(query.order_by(ProfileRow.name).limit(limit)):
        yield Found(FoundKind.PROFILE, row.name, row.name, row.description)


def _find_migrations(session: Session, search: str, limit: int, reach: Reach) -> Iterator[Found]:
    by_id = has_part(search, (), MigrationRow.id)
    by_name = has_part(search, (MigrationRow.vm_name,))
    query = select(*_MOVE).where(
        or_(by_id, _among_newest(MigrationRow.number) & by_name), *_reached(reach)
    )
    for row in session.execute(query.order_by(MigrationRow.number.desc()).limit(limit)):
        way = f"{row.source} to {row.destination or 'an unknown host'}, {row.state}"
        yield Found(FoundKind.MIGRATION, str(row.id), row.vm_name, way)


def _find_campaigns(session: Session, search: str, limit: int) -> Iterator[Found]:
    query = select(CampaignRow.id, CampaignRow.name, CampaignRow.state).where(
        has_part(search, (CampaignRow.name,), CampaignRow.id)
    )
    for row in session.execute(query.order_by(CampaignRow.number.desc()).limit(limit)):
        yield Found(FoundKind.CAMPAIGN, str(row.id), row.name, row.state)


def _find_studies(session: Session, search: str, limit: int) -> Iterator[Found]:
    query = select(StudyRow.id, StudyRow.name, StudyRow.state).where(
        has_part(search, (StudyRow.name,), StudyRow.id)
    )
    for row in session.execute(query.order_by(StudyRow.number.desc()).limit(limit)):
        yield Found(FoundKind.STUDY, str(row.id), row.name, row.state)


def _find_runs(session: Session, search: str, limit: int) -> Iterator[Found]:
    by_id = has_part(search, (), RunRow.id)
    by_name = has_part(search, (RunRow.scenario, RunRow.profile))
    query = select(RunRow.id, RunRow.scenario, RunRow.profile, RunRow.state).where(
        or_(by_id, _among_newest(RunRow.number) & by_name)
    )
    for row in session.execute(query.order_by(RunRow.number.desc()).limit(limit)):
        with_ = f"with {row.profile}, " if row.profile else ""
        yield Found(FoundKind.RUN, str(row.id), row.scenario, f"{with_}{row.state}")


def _among_newest(number: _Number) -> ColumnElement[bool]:
    newest = select(func.max(number)).scalar_subquery()
    return number > newest - _NEWEST
