"""Drift scans: the last one of each host, and requests."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from uuid import UUID

from sqlalchemy import func, or_, select, tuple_

from vmtune.errors import NotFound
from vmtune.model.access.scopes import EVERYTHING, Reach
from vmtune.model.plan.drift import Drift, DriftScan, ScanResult
from vmtune.model.plan.outcome import Application, ApplicationState
from vmtune.model.plan.tuning_state import TuningState
from vmtune.storage.database import Database
from vmtune.storage.mapping import Mapper
from vmtune.storage.paging import Page, check_limit, make_cursor, page, read_cursor
from vmtune.storage.repositories.applications import APPLICATIONS
from vmtune.storage.repositories.inventory import VMS
from vmtune.storage.repositories.reach import within
from vmtune.storage.repositories.tuning_states import TUNINGS
from vmtune.storage.tables.core import ApplicationRow, HostRow, OperationRow, TuningRow, VmRow
from vmtune.storage.tables.retention import DriftScanRow

_SCANS = Mapper(DriftScan, DriftScanRow)
_RESULTS = Mapper(ScanResult, DriftScanRow)


class DriftScanRepository:
    """The last scan of each host, by its name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self, hosts: Collection[str] | None = None) -> tuple[str, ...]:
        """Request a scan of some hosts, or of all, that begins after this. Several requests before
        it begins give one scan.

        :return: the hosts that exist.
        """
        with self._database.write() as session:
            names = select(HostRow.name).order_by(HostRow.name)
            if hosts is not None:
                names = names.where(HostRow.name.in_(hosts))
            known = session.scalars(names).all()
            rows = {row.host: row for row in session.scalars(select(DriftScanRow))}
            for name in known:
                row = rows.get(name)
                if row is None:
                    session.add(_row(DriftScan(name, asked=1), ScanResult()))
                else:
                    row.asked += 1
            return tuple(known)

    def get(self, host: str) -> DriftScan:
        """A host's scan; an empty one if none was requested.

        :raise NotFound: there is no such host.
        """
        with self._database.read() as session:
            row = session.get(DriftScanRow, host)
            if row is None and session.get(HostRow, host) is None:
                raise NotFound(f"there is no host named {host[:70]}", field="host")
            return _of(host, row)

    def list(
        self,
        host: str | None = None,
        after: str | None = None,
        limit: int = 100,
        reach: Reach = EVERYTHING,
    ) -> Page[DriftScan]:
        """Every host's, by the host's name, also where none was made yet."""
        query = select(HostRow.name, DriftScanRow).outerjoin(
            DriftScanRow, DriftScanRow.host == HostRow.name
        )
        query = query.order_by(HostRow.name).limit(check_limit(limit) + 1)
        if host is not None:
            query = query.where(HostRow.name == host)
        if reach.hosts is not None:
            query = query.where(HostRow.name.in_(reach.hosts))
        if after is not None:
            (name,) = read_cursor("drift_scans", after, str)
            query = query.where(HostRow.name > name)
        with self._database.read() as session:
            rows = [_of(*row) for row in session.execute(query)]
            return page(
                rows, limit, lambda one: one, lambda one: make_cursor("drift_scans", one.host)
            )

    def due(self, interval_s: int) -> tuple[DriftScan, ...]:
        """Those that it is time for; see :meth:`DriftScan.due`."""
        now = self._database.now()
        query = select(HostRow.name, DriftScanRow).outerjoin(
            DriftScanRow, DriftScanRow.host == HostRow.name
        )
        wanted = [DriftScanRow.asked > DriftScanRow.answered]
        if interval_s:
            interval = timedelta(seconds=interval_s)
            wanted += [
                DriftScanRow.ended_at.is_(None),
                DriftScanRow.ended_at <= now - interval,
                DriftScanRow.ended_at >= now + interval,
            ]
        with self._database.read() as session:
            scans = [_of(*row) for row in session.execute(query.where(or_(*wanted)))]
        return tuple(scan for scan in scans if scan.due(now, interval_s))

    def note(self, host: str, answers: int, result: ScanResult) -> None:
        """Note the result of a scan; nothing where the host was removed meanwhile.

        :param answers: how often one had been asked for when it began.
        """
        with self._database.write(durable=False) as session:
            if session.get(HostRow, host) is None:
                return
            before = session.get(DriftScanRow, host)
            asked = max(before.asked if before is not None else 0, answers)
            now, service = self._database.now(), self._database.service
            scan = DriftScan(host, asked, answers, service, now)
            session.merge(_row(scan, result))

    def standing(self, vms: Collection[UUID]) -> Mapping[UUID, Application]:
        """The current application of each of some VMs."""
        newest = (
            select(func.max(ApplicationRow.number))
            .where(ApplicationRow.vm.in_(vms), ApplicationRow.state == ApplicationState.APPLIED)
            .group_by(ApplicationRow.vm)
        )
        with self._database.read() as session:
            rows = session.scalars(select(ApplicationRow).where(ApplicationRow.number.in_(newest)))
            return {row.vm: APPLICATIONS.record(row) for row in rows}

    def busy(self, vms: Collection[UUID]) -> frozenset[UUID]:
        """Which of some VMs are being applied to or migrated."""
        query = select(OperationRow.vm).where(OperationRow.vm.in_(vms))
        with self._database.read() as session:
            return frozenset(session.scalars(query))

    def drifts(
        self,
        host: str | None = None,
        after: str | None = None,
        limit: int = 100,
        reach: Reach = EVERYTHING,
    ) -> Page[Drift]:
        """The VMs that drift, as last seen, in the order of their names."""
        key = (VmRow.name, VmRow.uuid)
        query = select(VmRow, TuningRow).join(TuningRow, TuningRow.vm == VmRow.uuid)
        query = query.where(TuningRow.state == TuningState.DRIFTED.value)
        query = query.where(*within(reach, (VmRow.host,), VmRow.uuid))
        query = query.order_by(*key).limit(check_limit(limit) + 1)
        if host is not None:
            query = query.where(VmRow.host == host)
        if after is not None:
            name, uuid = read_cursor("drifts", after, str, UUID)
            query = query.where(tuple_(*key) > tuple_(name, uuid))
        with self._database.read() as session:
            rows = [_drift(*row) for row in session.execute(query)]
            return page(
                rows,
                limit,
                lambda one: one,
                lambda one: make_cursor("drifts", one.vm.name, one.vm.uuid),
            )


def _drift(vm: VmRow, tuning: TuningRow) -> Drift:
    return Drift(VMS.record(vm), TUNINGS.record(tuning))


def _row(scan: DriftScan, result: ScanResult) -> DriftScanRow:
    return _SCANS.row(scan, **_RESULTS.columns(result))


def _of(host: str, row: DriftScanRow | None) -> DriftScan:
    """A host's scan, of its row where it has one."""
    if row is None:
        return DriftScan(host)
    return _SCANS.record(row, result=_RESULTS.record(row) if row.ended_at is not None else None)
