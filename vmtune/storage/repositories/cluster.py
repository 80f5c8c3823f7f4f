"""The services that share this database, the hosts that each manages, and jobs requested of each
other."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from vmtune.errors import Conflict, NotFound
from vmtune.model.cluster import JobOrder, Service, ServiceState
from vmtune.model.host.inventory import Host
from vmtune.storage.database import Database, Lease, rows_met
from vmtune.storage.mapping import Mapper
from vmtune.storage.repositories.inventory import HOSTS, host_row, open_operation
from vmtune.storage.tables.cluster import OrderRow, ServiceRow
from vmtune.storage.tables.core import HostRow, OperationRow

_SERVICES = Mapper(Service, ServiceRow)
_ORDERS = Mapper(JobOrder, OrderRow)


@dataclass(frozen=True, slots=True)
class TakenHosts:
    """The hosts of a service after a takeover.
    :param hosts: those that the heir manages now.
    :param left: those that only the dead service reaches.
    """

    hosts: tuple[str, ...]
    left: tuple[str, ...]


class ServiceRepository:
    """The services, by name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def join(self, name: str, machine: str, pid: int, version: str) -> Service:
        """Start a service's new epoch, and write under it from now on. Writes under an earlier
        epoch are refused."""
        self._database.lease = None
        with self._database.write() as session:
            now = self._database.now()
            row = session.get(ServiceRow, name)
            if row is None:
                row = ServiceRow(name=name, epoch=0, beats=0)
                session.add(row)
            row.machine, row.pid, row.version = machine, pid, version
            row.state, row.heir = ServiceState.RUNNING, ""
            row.epoch, row.beats = row.epoch + 1, row.beats + 1
            row.started_at = row.seen_at = now
            session.flush()
            joined = _SERVICES.record(row)
        self._database.lease = Lease(name, joined.epoch)
        return joined

    def beat(self, lease: Lease) -> bool:
        """Say that a service lives.

        :return: False where its work was taken over.
        """
        alive = (ServiceRow.name == lease.service) & (ServiceRow.epoch == lease.epoch)
        counted = {"beats": ServiceRow.beats + 1, "seen_at": self._database.now()}
        # Past the turn of the writers: a long one must not let this service look dead.
        with self._database.quick() as session:
            return rows_met(session, update(ServiceRow).where(alive).values(counted)) > 0

    def stop(self) -> None:
        """Say that this service stops."""
        lease = self._database.lease
        if lease is None:
            return
        with self._database.write() as session:
            row = session.get(ServiceRow, lease.service)
            if row is not None:
                row.state = ServiceState.STOPPED

    def all(self) -> tuple[Service, ...]:
        """Every service, by name."""
        with self._database.read() as session:
            return tuple(map(_SERVICES.record, session.scalars(select(ServiceRow).order_by(_NAME))))

    def get(self, name: str) -> Service | None:
        """The service of that name; None where there never was one."""
        with self._database.read() as session:
            row = session.get(ServiceRow, name)
            return _SERVICES.record(row) if row is not None else None

    def take_over(self, dead: Service, heir: str, machine: str) -> TakenHosts | None:
        """Give a service's hosts and requested jobs to *heir*, and refuse its further writes.

        :param dead: its row when its heartbeat was found missing.
        :param machine: the heir's: hosts whose address means another machine are left.
        :return: None if its heartbeat has changed since, or another service was first.
        """
        with self._database.write() as session:
            row = session.get(ServiceRow, dead.name)
            if row is None or (row.epoch, row.beats) != (dead.epoch, dead.beats):
                return None
            row.state, row.heir, row.epoch = ServiceState.TAKEN_OVER, heir, row.epoch + 1
            estates = update(ServiceRow).where(ServiceRow.heir == dead.name)
            session.execute(estates.values(heir=heir))
            hosts = session.scalars(select(HostRow).where(HostRow.owner == dead.name)).all()
            taken = [host for host in hosts if host.machine in ("", machine)]
            for host in taken:
                host.owner = heir
            orders = update(OrderRow).where(OrderRow.service == dead.name)
            session.execute(orders.values(service=heir))
            left = tuple(host.name for host in hosts if host not in taken)
            return TakenHosts(tuple(host.name for host in taken), left)

    def settle_estate(self, name: str) -> None:
        """Its work is taken over."""
        with self._database.write(durable=False) as session:
            row = session.get(ServiceRow, name)
            if row is not None:
                row.heir = ""

    def claim(self, host: str, service: str, machine: str) -> bool:
        """Let *service* manage a host that no service manages.

        :param machine: what its address means, where it names no machine; else empty.
        """
        with self._database.write() as session:
            row = session.get(HostRow, host)
            if row is None or row.owner:
                return False
            row.owner = service
            row.machine = row.machine or machine
            return True

    def give(self, host: str, service: str) -> Host:
        """Let *service* manage a host, also if another one does now.

        :raise NotFound: there is no such host, or no such service.
        :raise Conflict: an operation is open on the host, or the service does not reach it.
        """
        with self._database.write() as session:
            row = host_row(session, host)
            heir = session.get(ServiceRow, service)
            if heir is None or heir.state != ServiceState.RUNNING:
                raise NotFound(
                    f"no service named {service[:70]} runs",
                    field="service",
                    remedy="vmtune service list shows them",
                )
            if row.machine not in ("", heir.machine):
                raise Conflict(
                    f"{row.uri} means the machine {row.machine}, and {service} runs on "
                    f"{heir.machine}",
                    field="service",
                    code="host_elsewhere",
                    remedy="add the host by an address that names its machine, or choose a "
                    "service there",
                )
            _refuse_busy(session, row)
            row.owner = service
            session.flush()
            return HOSTS.record(row)

    def order(self, job: str, kind: str, host: str, here: str = "") -> str:
        """Request a job from the service that manages a host. Idempotent.
        :param here: the requesting service; nothing is stored if it or no service manages the host.
        :return: whose job it is.
        """
        with self._database.write() as session:
            found = session.get(HostRow, host)
            service = (found.owner if found is not None else "") or here
            if service != here and session.get(OrderRow, job) is None:
                now = self._database.now()
                row = OrderRow(job=job, kind=kind, service=service, cancelled=False, ordered_at=now)
                session.add(row)
            return service

    def orders(self, service: str) -> tuple[JobOrder, ...]:
        """Jobs that a service has to begin, oldest first."""
        query = select(OrderRow).where(OrderRow.service == service)
        with self._database.read() as session:
            rows = session.scalars(query.order_by(OrderRow.ordered_at, OrderRow.job))
            return tuple(map(_ORDERS.record, rows))

    def ordered(self, job: str) -> JobOrder | None:
        """A job that is requested and not begun."""
        with self._database.read() as session:
            row = session.get(OrderRow, job)
            return _ORDERS.record(row) if row is not None else None

    def cancel_order(self, job: str) -> bool:
        """Record that a job has to end as soon as it begins; False if it has begun."""
        with self._database.write() as session:
            row = session.get(OrderRow, job)
            if row is not None:
                row.cancelled = True
            return row is not None

    def begun(self, job: str) -> None:
        """Delete a request: its job is now durable elsewhere."""
        with self._database.write() as session:
            session.execute(delete(OrderRow).where(OrderRow.job == job))

    def operations_of(self, service: str) -> frozenset[str]:
        """The applications and migrations that a service has begun and that are open."""
        query = select(OperationRow.operation).where(OperationRow.service.in_((service, "")))
        with self._database.read() as session:
            return frozenset(str(id) for id in session.scalars(query))


_NAME = ServiceRow.name


def _refuse_busy(session: Session, host: HostRow) -> None:
    """:raise Conflict: something is open on a host."""
    busy = open_operation(session, host.name)
    if busy:
        raise Conflict(
            f"{busy} is open on host {host.name}",
            field="name",
            code="host_in_use",
            remedy="wait until it has ended, or abort it",
        )
