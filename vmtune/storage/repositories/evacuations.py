"""Evacuations, and the states of their VMs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from uuid import UUID, uuid4

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from vmtune.errors import Conflict, NotFound
from vmtune.model.access.scopes import EVERYTHING, Reach
from vmtune.model.evacuation.evacuation import (
    NEXT,
    Evacuation,
    EvacuationState,
    EvacuationVm,
    EvacuationVmState,
    LocalDisks,
    Order,
    Tally,
)
from vmtune.model.findings.table import FINDINGS, Finding
from vmtune.model.host.disks import Disk
from vmtune.model.migration.intent import Intent
from vmtune.model.tunables.tunable import Value
from vmtune.storage.columns import storable
from vmtune.storage.database import Database
from vmtune.storage.mapping import Mapper, Stored
from vmtune.storage.paging import Page, check_limit, make_cursor, page, read_cursor
from vmtune.storage.tables.core import JsonList
from vmtune.storage.tables.evacuations import EvacuationRow, EvacuationVmRow

_OPEN = tuple(state.value for state in EvacuationState if not state.ended)
_PENDING = tuple(state.value for state in EvacuationVmState if not state.ended)


def _findings(stored: JsonList) -> tuple[Finding, ...]:
    """Without those of a pack that is no longer loaded, or of a later vmtune."""
    return tuple(Finding(**each) for each in stored if each["code"] in FINDINGS)


_MAP = Mapper(Evacuation, EvacuationRow)
_VMS = Mapper(
    EvacuationVm,
    EvacuationVmRow,
    name=Stored(storable),
    reason=Stored(storable),
    findings=Stored(load=_findings),
    values=Stored(load=lambda stored: stored or {}),
)


class EvacuationRepository:
    """The evacuations, by UUID; lists give the newest first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(
        self,
        host: str,
        vms: Sequence[EvacuationVm],
        *,
        destinations: Sequence[str] = (),
        order: Order = Order.PRIORITY,
        priority: int = 0,
        max_outgoing: int | None = None,
        stop_after_failures: int | None = None,
        profile: str = "",
        id: UUID | None = None,
        intent: Intent | None = None,
        local_disks: LocalDisks = LocalDisks.PROFILE,
    ) -> Evacuation:
        """Record an evacuation before its first migration; it runs from now on.

        :param vms: in the order of moving.
        :raise Conflict: the host or a destination is being evacuated.
        """
        with self._database.write() as session:
            _refuse_against_others(session, host, {vm.destination for vm in vms})
            row = _MAP.row(
                Evacuation(
                    id=id or uuid4(),
                    host=host,
                    destinations=tuple(destinations),
                    order=order,
                    priority=priority,
                    max_outgoing=max_outgoing,
                    stop_after_failures=stop_after_failures,
                    profile=profile,
                    state=EvacuationState.RUNNING,
                    reason="",
                    created_at=self._database.now(),
                    intent=intent,
                    local_disks=local_disks,
                )
            )
            session.add(row)
            session.flush()
            session.add_all(_row(row.number, place, vm) for place, vm in enumerate(vms))
            session.flush()
            return _MAP.record(row)

    def add(self, id: UUID, vms: Sequence[EvacuationVm]) -> None:
        """Append VMs that came to the host meanwhile.

        :raise NotFound: there is no such evacuation.
        """
        with self._database.write() as session:
            number = _find(session, id).number
            last = select(func.max(EvacuationVmRow.position)).where(
                EvacuationVmRow.evacuation == number
            )
            found = session.scalar(last)
            first = 0 if found is None else found + 1
            session.add_all(_row(number, place, vm) for place, vm in enumerate(vms, first))

    def arriving(self, host: str) -> int:
        """How many VMs of evacuations are on their way to a host."""
        query = select(func.count()).where(
            EvacuationVmRow.destination == host,
            EvacuationVmRow.state == EvacuationVmState.REQUESTED,
        )
        with self._database.read() as session:
            return session.scalar(query) or 0

    def enter(self, id: UUID, state: EvacuationState, reason: str = "") -> Evacuation:
        """Set its state.

        :raise NotFound: there is no such evacuation.
        :raise Conflict: that state cannot follow its present one.
        """
        with self._database.write() as session:
            row = _find(session, id)
            if state not in NEXT[EvacuationState(row.state)]:
                raise Conflict(
                    f"the evacuation is {row.state} and cannot become {state.value}",
                    field="evacuation",
                    code="illegal_transition",
                    remedy="read it again: it has changed in the meantime",
                )
            row.state, row.reason = state, storable(reason)
            if state.ended:
                row.ended_at = self._database.now()
            session.flush()
            return _MAP.record(row)

    def get(self, id: UUID, host: str | None = None) -> Evacuation:
        """:raise NotFound: there is no such evacuation, or it is not of *host*."""
        with self._database.read() as session:
            row = _find(session, id)
            if host is not None and row.host != host:
                raise _none(id)
            return _MAP.record(row)

    def list(
        self,
        host: str | None = None,
        states: Collection[EvacuationState] = (),
        after: str | None = None,
        limit: int = 100,
        reach: Reach = EVERYTHING,
    ) -> Page[Evacuation]:
        """Evacuations, newest first.
        :param states: filter; empty for all.
        """
        query = select(EvacuationRow).order_by(EvacuationRow.number.desc())
        query = query.limit(check_limit(limit) + 1)
        if host is not None:
            query = query.where(EvacuationRow.host == host)
        if states:
            query = query.where(EvacuationRow.state.in_(states))
        if reach.hosts is not None:
            query = query.where(EvacuationRow.host.in_(reach.hosts))
        if after is not None:
            (number,) = read_cursor("evacuations", after, int)
            query = query.where(EvacuationRow.number < number)
        with self._database.read() as session:
            rows = session.scalars(query).all()
            return page(
                rows, limit, _MAP.record, lambda row: make_cursor("evacuations", row.number)
            )

    def unfinished(self) -> tuple[Evacuation, ...]:
        """Those that have not ended, oldest first."""
        query = select(EvacuationRow).where(EvacuationRow.state.in_(_OPEN))
        with self._database.read() as session:
            return tuple(map(_MAP.record, session.scalars(query.order_by(EvacuationRow.number))))

    def vms(self, id: UUID) -> tuple[EvacuationVm, ...]:
        """All its VMs, in the order of moving."""
        with self._database.read() as session:
            query = select(EvacuationVmRow).where(
                EvacuationVmRow.evacuation == _find(session, id).number
            )
            return tuple(
                map(_VMS.record, session.scalars(query.order_by(EvacuationVmRow.position)))
            )

    def vm_page(self, id: UUID, after: str | None = None, limit: int = 100) -> Page[EvacuationVm]:
        """Likewise, page by page."""
        with self._database.read() as session:
            query = select(EvacuationVmRow).where(
                EvacuationVmRow.evacuation == _find(session, id).number
            )
            query = query.order_by(EvacuationVmRow.position).limit(check_limit(limit) + 1)
            if after is not None:
                (position,) = read_cursor("evacuation_vms", after, int)
                query = query.where(EvacuationVmRow.position > position)
            rows = session.scalars(query).all()
            return page(
                rows, limit, _VMS.record, lambda row: make_cursor("evacuation_vms", row.position)
            )

    def note(
        self,
        id: UUID,
        vm: UUID,
        state: EvacuationVmState,
        *,
        reason: str = "",
        destination: str | None = None,
        findings: Sequence[Finding] | None = None,
        migration: UUID | None = None,
        disks: Sequence[Disk] | None = None,
        values: Mapping[str, Value] | None = None,
    ) -> EvacuationVm:
        """Record one VM's state; None keeps a field.

        :raise NotFound: the evacuation has no such VM.
        """
        with self._database.write() as session:
            query = select(EvacuationVmRow).where(
                EvacuationVmRow.evacuation == _find(session, id).number, EvacuationVmRow.vm == vm
            )
            row = session.scalar(query)
            if row is None:
                raise NotFound(f"the evacuation has no VM {vm}", field="vm")
            row.state, row.reason = state, storable(reason)
            changed = {"destination": destination, "findings": findings, "migration": migration}
            _VMS.change(row, {**changed, "disks": disks, "values": values})
            session.flush()
            return _VMS.record(row)

    def tallies(self, ids: Collection[UUID]) -> Mapping[UUID, Tally]:
        """How far each of these is."""
        query = (
            select(
                EvacuationRow.id,
                EvacuationVmRow.state,
                func.count(),
                func.sum(EvacuationVmRow.memory_bytes),
            )
            .join(EvacuationVmRow, EvacuationVmRow.evacuation == EvacuationRow.number)
            .where(EvacuationRow.id.in_(ids))
            .group_by(EvacuationRow.id, EvacuationVmRow.state)
        )
        found = {id: Tally({}, 0, 0) for id in ids}
        with self._database.read() as session:
            for id, name, count, memory in session.execute(query):
                state, before = EvacuationVmState(name), found[id]
                moved = int(memory) if state is EvacuationVmState.MOVED else 0
                counted = state not in _NEVER_MOVED
                found[id] = replace(
                    before,
                    states={**before.states, state: count},
                    total_bytes=before.total_bytes + (int(memory) if counted else 0),
                    moved_bytes=before.moved_bytes + moved,
                )
        return found

    def promised(self, hosts: Collection[str]) -> Mapping[str, int]:
        """How much memory the VMs will take that evacuations send to each of these hosts, and
        that have not arrived."""
        query = (
            select(EvacuationVmRow.destination, func.sum(EvacuationVmRow.memory_bytes))
            .where(EvacuationVmRow.destination.in_(hosts), EvacuationVmRow.state.in_(_PENDING))
            .group_by(EvacuationVmRow.destination)
        )
        with self._database.read() as session:
            return {host: int(memory) for host, memory in session.execute(query)}

    def promised_disks(self, host: str) -> Mapping[UUID, tuple[Disk, ...]]:
        """The disks that will be copied to a host with VMs that evacuations send there, by VM."""
        query = select(EvacuationVmRow).where(
            EvacuationVmRow.destination == host,
            EvacuationVmRow.state.in_(_PENDING),
            EvacuationVmRow.disks.is_not(None),
        )
        with self._database.read() as session:
            return {row.vm: _VMS.record(row).disks for row in session.scalars(query)}


_NEVER_MOVED = (
    EvacuationVmState.BLOCKED,
    EvacuationVmState.NOT_PLACED,
    EvacuationVmState.NOT_RUNNING,
)


def _refuse_against_others(session: Session, host: str, destinations: Collection[str]) -> None:
    evacuating = select(EvacuationRow.host).where(EvacuationRow.state.in_(_OPEN))
    open_hosts = set(session.scalars(evacuating))
    if host in open_hosts:
        raise Conflict(
            f"{host} is being evacuated",
            field="host",
            code="evacuating",
            remedy="follow that evacuation, or cancel it first",
        )
    for name in sorted(open_hosts & set(destinations)):
        raise Conflict(
            f"{name} is being evacuated, so that nothing can go there",
            field="destinations",
            code="destination_evacuating",
            remedy="choose other hosts",
        )


def _row(evacuation: int, position: int, vm: EvacuationVm) -> EvacuationVmRow:
    return _VMS.row(vm, evacuation=evacuation, position=position)


def _find(session: Session, id: UUID) -> EvacuationRow:
    row = session.scalar(select(EvacuationRow).where(EvacuationRow.id == id))
    if row is None:
        raise _none(id)
    return row


def _none(id: UUID) -> NotFound:
    return NotFound(f"there is no evacuation {id}", field="evacuation")
