"""Hosts, and the VMs that were seen on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from uuid import UUID

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from vmtune.bench.model.scenario.block_target import VM_HOST
from vmtune.errors import Conflict, DuplicateName, NotFound
from vmtune.model.access.scopes import EVERYTHING, Reach
from vmtune.model.host.inventory import Host, Vm
from vmtune.model.migration.record import MigrationState
from vmtune.model.plan.outcome import ApplicationState
from vmtune.storage.database import Database
from vmtune.storage.mapping import Mapper
from vmtune.storage.paging import Page, check_limit, make_cursor, page, read_cursor
from vmtune.storage.repositories.searching import has_part
from vmtune.storage.tables.core import (
    ApplicationRow,
    HostRow,
    MigrationRow,
    OperationRow,
    RunRow,
    VmRow,
)

HOSTS = Mapper(Host, HostRow)
VMS = Mapper(Vm, VmRow)
# Without an object for each row, whose bookkeeping takes longer than the rest of a list.
_HOST_COLUMNS = tuple(HostRow.__table__.columns)
_VM_COLUMNS = tuple(VmRow.__table__.columns)
_ON_HOSTS = select(*_VM_COLUMNS).where(VmRow.host.in_(bindparam("hosts", expanding=True)))


class HostRepository:
    """The hosts, by name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, host: Host) -> Host:
        """Remember a host.

        :raise DuplicateName: there is one of that name.
        """
        with self._database.write() as session:
            if session.get(HostRow, host.name) is not None:
                raise DuplicateName(
                    f"there is a host named {host.name} already",
                    field="name",
                    remedy="choose another name, or change that host",
                )
            row = HOSTS.row(host)
            session.add(row)
            return HOSTS.record(row)

    def get(self, name: str) -> Host:
        """The host of that name.

        :raise NotFound: there is none.
        """
        with self._database.read() as session:
            return HOSTS.record(host_row(session, name))

    def list(
        self,
        after: str | None = None,
        limit: int = 100,
        reach: Reach = EVERYTHING,
        search: str = "",
    ) -> Page[Host]:
        """Hosts in the order of their names.

        :param search: a part of their names or URIs, whatever the case.
        """
        query = select(*_HOST_COLUMNS).order_by(HostRow.name).limit(check_limit(limit) + 1)
        if reach.hosts is not None:
            query = query.where(HostRow.name.in_(reach.hosts))
        if search:
            query = query.where(has_part(search, (HostRow.name, HostRow.uri)))
        if after is not None:
            (name,) = read_cursor("hosts", after, str)
            query = query.where(HostRow.name > name)
        with self._database.read() as session:
            rows = session.execute(query).all()
            return page(rows, limit, HOSTS.record, lambda row: make_cursor("hosts", row.name))

    def update(
        self,
        name: str,
        *,
        uri: str | None = None,
        peer_uri: str | None = None,
        migration_address: str | None = None,
        network: Mapping[str, str] | None = None,
    ) -> Host:
        """Change a host; None keeps a field.

        :param network: addresses of its migration network, by name.
        :raise NotFound: there is none of that name.
        """
        with self._database.write() as session:
            row = host_row(session, name)
            changed = {"uri": uri, "peer_uri": peer_uri, "migration_address": migration_address}
            HOSTS.change(row, {**changed, **(network or {})})
            session.flush()
            return HOSTS.record(row)

    def set_maintenance(self, name: str, on: bool) -> Host:
        """Begin a host's maintenance, or end it. One that has begun goes on since then.

        :raise NotFound: there is none of that name.
        """
        with self._database.write() as session:
            row = host_row(session, name)
            now = row.maintenance_since or self._database.now()
            row.maintenance_since = now if on else None
            session.flush()
            return HOSTS.record(row)

    def remove(self, name: str) -> None:
        """Remove a host and its VMs, with their labels. Records of operations stay, and so do
        assignments to the host: they apply again when it is added again.

        :raise NotFound: there is none of that name.
        :raise Conflict: an application or a migration on it is open.
        """
        with self._database.write() as session:
            row = host_row(session, name)
            busy = open_operation(session, name)
            if busy:
                raise Conflict(
                    f"{busy} is open on host {name}",
                    field="name",
                    code="host_in_use",
                    remedy="wait until it has ended, or abort it",
                )
            # One by one, so that the audit log has the labels that go.
            for vm in session.scalars(select(VmRow).where(VmRow.host == name)):
                session.delete(vm)
            session.flush()
            session.delete(row)


class VmRepository:
    """VMs as last seen, with the operator's labels."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def remember(self, uuid: UUID, name: str, host: str, seen_at: datetime) -> Vm:
        """Record where a VM was seen; its labels stay. Older sightings are ignored.

        :raise NotFound: there is no such host.
        """
        self.remember_all(host, {uuid: name}, seen_at)
        return self.get(uuid)

    def remember_all(
        self,
        host: str,
        names: Mapping[UUID, str],
        seen_at: datetime,
        passing: Collection[UUID] = (),
    ) -> None:
        """Note all VMs that were seen on a host, in one transaction.

        :param names: name by UUID.
        :param passing: those that do not run there yet, or no more: where they are known, they
            stay where they were seen.
        :raise NotFound: there is no such host.
        """
        with self._database.write(durable=False) as session:
            host_row(session, host)
            known = select(VmRow).where(VmRow.uuid.in_(names))
            rows = {row.uuid: row for row in session.scalars(known)}
            for uuid, name in names.items():
                row = rows.get(uuid)
                if row is None:
                    # Where it only passes, whoever sees it run is right, in whatever order the
                    # sightings of several hosts are stored.
                    seen = None if uuid in passing else seen_at
                    session.add(VmRow(uuid=uuid, name=name, host=host, labels={}, seen_at=seen))
                elif uuid not in passing and (row.seen_at is None or row.seen_at <= seen_at):
                    row.name, row.host, row.seen_at = name, host, seen_at

    def get(self, uuid: UUID) -> Vm:
        """The VM of that UUID.

        :raise NotFound: it was never seen.
        """
        with self._database.read() as session:
            return VMS.record(_vm_row(session, uuid))

    def on_hosts(self, hosts: Collection[str]) -> dict[str, dict[UUID, Vm]]:
        """The VMs that were last seen on each of these hosts, by UUID."""
        found: dict[str, dict[UUID, Vm]] = {host: {} for host in hosts}
        with self._database.read() as session:
            for row in session.execute(_ON_HOSTS, {"hosts": [*found]}):
                found[row.host][row.uuid] = VMS.record(row)
        return found

    def set_labels(self, uuid: UUID, labels: Mapping[str, str]) -> Vm:
        """Replace a VM's labels.

        :raise NotFound: it was never seen.
        """
        with self._database.write() as session:
            row = _vm_row(session, uuid)
            row.labels = dict(labels)
            session.flush()
            return VMS.record(row)


def host_row(session: Session, name: str) -> HostRow:
    row = session.get(HostRow, name)
    if row is None:
        raise NotFound(
            f"there is no host named {name[:70]}",
            field="host",
            remedy="vmtune host list shows them, vmtune host add adds one",
        )
    return row


def open_operation(session: Session, host: str) -> str:
    """The operation that is open on a host, in words; empty where there is none."""
    application = session.scalar(
        select(ApplicationRow.id).where(
            ApplicationRow.host == host,
            ApplicationRow.state.in_([state for state in ApplicationState if state.open]),
        )
    )
    if application is not None:
        return f"application {application}"
    migration = session.scalar(
        select(MigrationRow.id).where(
            (MigrationRow.source == host) | (MigrationRow.destination == host),
            MigrationRow.state.in_([state for state in MigrationState if not state.ended]),
        )
    )
    if migration is not None:
        return f"migration {migration}"
    # Few have a VM to themselves at any time.
    held = select(RunRow).join(OperationRow, OperationRow.operation == RunRow.id)
    for run in session.scalars(held):
        if run.options.get(VM_HOST) == host:
            return f"benchmark {run.id}"
    return ""


def _vm_row(session: Session, uuid: UUID) -> VmRow:
    row = session.get(VmRow, uuid)
    if row is None:
        raise NotFound(
            f"no VM with UUID {uuid} was seen on any host",
            field="vm",
            remedy="vmtune vm list shows them",
        )
    return row
