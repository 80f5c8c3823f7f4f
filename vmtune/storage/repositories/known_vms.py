"""VMs of a large installation, page by page, as last seen: no host is queried."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, case, func, select, tuple_
from sqlalchemy.orm import Session

from vmtune.model.access.scopes import EVERYTHING, Reach
from vmtune.model.host.inventory import Vm, VmSort
from vmtune.model.plan.tuning_state import WORST_FIRST, TuningState
from vmtune.storage.database import Database
from vmtune.storage.paging import Page, check_limit, make_cursor, page, read_cursor
from vmtune.storage.repositories.inventory import VMS
from vmtune.storage.repositories.searching import has_part
from vmtune.storage.tables.core import TuningRow, VmRow

_VM_COLUMNS = tuple(VmRow.__table__.columns)
_stands = func.coalesce(TuningRow.state, TuningState.UNTUNED.value)
_RANKS: Mapping[VmSort, ColumnElement[str]] = {
    VmSort.HOST: VmRow.host.expression,
    VmSort.TUNING: case(
        {state.value: str(place) for place, state in enumerate(WORST_FIRST)}, value=_stands
    ),
}
"""What lists are in the order of, before names, where it is anything else."""
_RARE = 10
"""A tuning state is rare that fewer than one of so many VMs are in."""


class KnownVms:
    """All VMs that were ever listed, in the order of their names."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def count(self) -> int:
        """How many there are."""
        with self._database.read() as session:
            return session.scalar(select(func.count()).select_from(VmRow)) or 0

    def counts(self, hosts: Collection[str]) -> Mapping[str, int]:
        """How many VMs were last seen on each of these hosts."""
        query = select(VmRow.host, func.count()).where(VmRow.host.in_(hosts)).group_by(VmRow.host)
        with self._database.read() as session:
            found = {host: count for host, count in session.execute(query)}
        return {host: found.get(host, 0) for host in hosts}

    def page(
        self,
        listing: str,
        after: str | None,
        limit: int,
        *,
        name: str | None = None,
        search: str = "",
        sort: VmSort = VmSort.NAME,
        labels: Sequence[tuple[str, str]] = (),
        tuning: TuningState | None = None,
        reach: Reach = EVERYTHING,
    ) -> tuple[Page[Vm], Mapping[TuningState, int]]:
        """A page, and the numbers of VMs by tuning state over all pages, before that filter.

        :param listing: the list that the cursors (rank, name, UUID, host) belong to.
        :param search: a part of their names, or the beginning of their UUIDs.
        """
        conditions = _conditions(name, search, labels, reach)
        rank = _RANKS.get(sort.by)
        ranked = () if rank is None else (rank,)
        key = (*ranked, VmRow.name, VmRow.uuid, VmRow.host)
        order = [each.desc() for each in key] if sort.backwards else key
        query = select(*_VM_COLUMNS, *(each.label("rank") for each in ranked)).where(*conditions)
        query = query.order_by(*order).limit(check_limit(limit) + 1)
        if after is not None:
            seen = read_cursor(listing, after, str, str, UUID, str)[1 - len(ranked) :]
            beyond = (
                tuple_(*key) < tuple_(*seen) if sort.backwards else tuple_(*key) > tuple_(*seen)
            )
            query = query.where(beyond)
        with self._database.read() as session:
            counts = counts_by_tuning(session, conditions)
            if tuning is not None and _is_rare(tuning, counts):
                # found by the index of states, then put in order; an outer join reads all VMs
                query = query.join(TuningRow, TuningRow.vm == VmRow.uuid)
                query = query.where(TuningRow.state == tuning.value)
            elif tuning is not None or sort.by is VmSort.TUNING:
                # the join alone takes ten times as long as all the rest
                query = query.outerjoin(TuningRow, TuningRow.vm == VmRow.uuid)
                if tuning is not None:
                    query = query.where(_stands == tuning.value)
            rows = session.execute(query).all()
            found = page(
                rows,
                limit,
                VMS.record,
                lambda row: make_cursor(
                    listing, row.rank if ranked else "", row.name, str(row.uuid), row.host
                ),
            )
        return found, counts


def _is_rare(tuning: TuningState, counts: Mapping[TuningState, int]) -> bool:
    """Whether VMs in that state are sooner found by it than among all in their order. Those that
    nothing is known of are in no table of states."""
    return tuning is not TuningState.UNTUNED and counts[tuning] * _RARE < sum(counts.values())


def counts_by_tuning(
    session: Session, conditions: Sequence[ColumnElement[bool]]
) -> Mapping[TuningState, int]:
    """Numbers of VMs by tuning state; unknown ones are untuned. For all VMs they are counted
    without reading each: one that was removed since may count too."""
    total = session.scalar(select(func.count()).select_from(VmRow).where(*conditions)) or 0
    known = select(TuningRow.state, func.count()).group_by(TuningRow.state)
    if conditions:
        known = known.join(VmRow, TuningRow.vm == VmRow.uuid).where(*conditions)
    found = {TuningState(state): count for state, count in session.execute(known)}
    rest = total - sum(c for state, c in found.items() if state is not TuningState.UNTUNED)
    return {state: found.get(state, 0) for state in TuningState} | {
        TuningState.UNTUNED: max(rest, 0)
    }


def _conditions(
    name: str | None, search: str, labels: Sequence[tuple[str, str]], reach: Reach
) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if name is not None:
        conditions.append(VmRow.name == name)
    if search:
        conditions.append(has_part(search, (VmRow.name,), VmRow.uuid))
    for key, value in labels:
        conditions.append(VmRow.labels[key].as_string() == value)
    return [*conditions, *within_reach(reach)]


def within_reach(reach: Reach) -> list[ColumnElement[bool]]:
    """The conditions for a VM to be within *reach*."""
    conditions: list[ColumnElement[bool]] = []
    if reach.hosts is not None:
        conditions.append(VmRow.host.in_(reach.hosts))
    for key, value in reach.labels:
        conditions.append(VmRow.labels[key].as_string() == value)
    return conditions
