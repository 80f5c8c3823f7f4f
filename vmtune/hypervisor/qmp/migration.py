"""A live migration between two QEMUs that are managed by their monitors alone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from vmtune.errors import CommandRefused, OutcomeUnknown, VmtuneError
from vmtune.hypervisor.event_hub import Subscription
from vmtune.hypervisor.protocol import EventKind, MigrateOrder
from vmtune.hypervisor.qemu.allowlist import BLOCKTIME, SWITCHES
from vmtune.hypervisor.qemu.block_allowlist import SOCKET
from vmtune.hypervisor.qemu.names import capabilities
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.hypervisor.qemu.write import write
from vmtune.hypervisor.qmp import copies
from vmtune.hypervisor.qmp.arrival import Arrival
from vmtune.hypervisor.qmp.copies import Pair
from vmtune.hypervisor.qmp.qemu import Qemu
from vmtune.hypervisor.qmp.switchover import Switchover
from vmtune.model.host.network import DirectAddress
from vmtune.model.host.uri import in_brackets
from vmtune.model.migration.prior import Prior, PriorSettings
from vmtune.model.migration.record import (
    MIGRATION_CANCELLED,
    QemuStatus,
    Snapshot,
    read_query_migrate,
)
from vmtune.model.plan.changes import Change, in_order, undo
from vmtune.model.tunables import tunable as tunables
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.rows.storage import CALL_ARGUMENTS
from vmtune.model.tunables.tunable import QmpKind, Route, Value

_LOOK_EVERY_S = 0.5
_COPIES_EVERY_S = 0.1
_TOTALS_AFTER_S = 0.02
_TOTALS_ATTEMPTS = 250

_MIGRATE = [row for row in BUILT_IN.values() if row.route is Route.MIGRATE]
_CAPABILITIES = [r for r in _MIGRATE if r.qmp and r.qmp.kind is QmpKind.CAPABILITY]


_COLO = "x-colo"


class Endpoint:
    """One of the two QEMUs, and what has to be set there to restore it."""

    def __init__(self, name: str, qemu: Qemu) -> None:
        self.name = name
        self.qemu = qemu
        self.prior = Prior()
        self._changes: list[Change] = []

    async def look(self, values: Mapping[str, Value]) -> Prior:
        """What is set now of what :meth:`prepare` will set.

        :param values: to be set. Every capability for migrations that they do not name is
            switched off, so that what runs is what was requested; but for the return path, without
            which the source would call a migration completed that the destination has failed to
            load, and for the figures of post-copy. Parameters that are not named stay.
        :raise CommandRefused: it cannot be migrated as it is set.
        """
        names = {*values, *(row.name for row in _CAPABILITIES)}
        readings = await self.qemu.probe.read(names)
        changes = [Change(name, value) for name, value in values.items()]
        changes += (
            Change(row.name, False)
            for row in _CAPABILITIES
            if row.name not in values and readings[row.name].value is not None
        )
        with self._named():
            has = await _switches(self.qemu)
        self._changes = in_order(changes, readings)
        self.prior = Prior(tuple(in_order(undo(changes, readings), readings)), has)
        return self.prior

    async def prepare(self, counts_blocktime: bool = False, *, waits: bool = False) -> None:
        """Set what was given to :meth:`look`.

        :param counts_blocktime: have QEMU count what a post-copy costs, where it can.
        :param waits: have the source wait at the switchover until it is told to go on.
        :raise CommandRefused: QEMU refused one, which is named, and the side too.
        """
        has = self.prior.switches
        on = {"events": True, "return-path": True}
        if counts_blocktime and BLOCKTIME in has:
            on[BLOCKTIME] = True
        if waits:
            on["pause-before-switchover"] = True
        with self._named():
            # First: some of them exclude what is set next.
            await _switch(self.qemu, {name: False for name, was_on in has.items() if was_on})
            await write(self.qemu.monitor, self._changes, BUILT_IN)
            await _switch(self.qemu, on)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Name the side in what QEMU refuses."""
        try:
            yield
        except CommandRefused as refusal:
            problem = refusal.problems[0]
            raise CommandRefused(
                f"QEMU on the {self.name} refused: {problem.message}",
                field=problem.field,
                code=problem.code,
                remedy=problem.remedy,
            ) from refusal

    async def put_back(self) -> None:
        """Set what was there before, as far as QEMU lets it. Errors are passed over: the first one,
        which led here, is reported."""
        monitor = self.qemu.monitor
        try:
            await write(monitor, self.prior.changes, BUILT_IN)
        except VmtuneError:
            for change in self.prior.changes:
                with contextlib.suppress(VmtuneError):
                    await write(monitor, [change], BUILT_IN)
        with contextlib.suppress(VmtuneError):
            await _switch(self.qemu, self.prior.switches)


async def _switches(qemu: Qemu) -> dict[str, bool]:
    """The capabilities that QEMU has and that are set for a migration without being tunables.

    :raise CommandRefused: COLO is on, which never ends a migration.
    """
    reply = await qemu.monitor.execute("query-migrate-capabilities")
    with reading_reply("its capabilities"):
        known = capabilities(reply)
    if known.get(_COLO):
        raise CommandRefused(
            f"the capability {_COLO} is on, with which a migration becomes replication",
            code="colo_is_on",
            remedy=f"switch {_COLO} off with migrate-set-capabilities",
        )
    return {name: known[name] for name in SWITCHES if name in known}


async def _switch(qemu: Qemu, switches: Mapping[str, bool]) -> None:
    if switches:
        rows = [{"capability": name, "state": on} for name, on in switches.items()]
        await qemu.monitor.execute("migrate-set-capabilities", {"capabilities": rows})


async def restore(qemu: Qemu, prior: Prior, registry: TunableRegistry) -> None:
    """Set what was there before a migration.

    :raise CommandRefused: a migration is still active.
    """
    await write(qemu.monitor, prior.changes, registry)
    await _switch(qemu, prior.switches)


def _values_of(order: MigrateOrder, side: tunables.Side) -> dict[str, Value]:
    """The order's values for one side."""
    values = {n: v for n, v in order.values.items() if n not in CALL_ARGUMENTS}
    named = {n: v for n, v in values.items() if BUILT_IN[n].side in (side, _BOTH)}
    return {**named, **order.destination_values} if side is _DESTINATION else named


_BOTH = tunables.Side.BOTH
_SOURCE = tunables.Side.SOURCE
_DESTINATION = tunables.Side.DESTINATION


def local_uri(qemu: Qemu) -> str:
    """A socket next to its monitor, whose path is shorter, so it fits too. QEMU removes it when it
    stops listening, and before it listens again."""
    return f"unix:{qemu.path.with_name('.' + qemu.path.stem)}"


def _tcp(address: str, port: int | str) -> str:
    return f"tcp:{in_brackets(address)}:{port}"


class DirectMigration:
    """A :class:`~vmtune.hypervisor.protocol.MigrationHandle`.

    ``aborted`` is whether QEMU has been asked to cancel it.

    :param news: the source's events, which save waiting for the next look.
    :param disks: those that are copied before the memory.
    """

    begun = True
    """What QEMU refuses to begin has no handle."""

    def __init__(
        self,
        source: Endpoint,
        destination: Endpoint,
        order: MigrateOrder,
        news: Subscription,
        disks: Sequence[Pair] = (),
    ) -> None:
        self.source = source
        self.destination = destination
        self.aborted = False
        self.copying = bool(disks)
        """QEMU does not migrate yet: disks are copied."""
        self._copies = disks
        self.arrival = Arrival(source.qemu, destination.qemu)
        self._order = order
        self._news = news
        self._connection = source.qemu.monitor.connections
        self._follower: asyncio.Task[VmtuneError | None] | None = None

    async def begin(self, address: DirectAddress) -> None:
        """Prepare both sides, make the destination listen, and start.

        :raise OutcomeUnknown: the connection was lost at the start: it may have begun.
        :raise VmtuneError: it could not be started; both sides were restored.
        """
        begins = False
        try:
            await self._look_at_both()
            await self.arrival.note_source()
            await self.destination.prepare(bool(self._order.values.get("postcopy")))
            await self.source.prepare(waits=bool(self._copies))
            uri = await self._listen(address)
            if self._copies:
                await self._begin_copies(address)
            else:
                begins = True
                await self.source.qemu.monitor.execute("migrate", {"uri": uri})
        except VmtuneError as error:
            if not (begins and isinstance(error, OutcomeUnknown)):
                await self._drop_copies()
                await self.source.put_back()
                await self.destination.put_back()
            raise
        self._follower = asyncio.create_task(self._follow(uri), name=f"migration {self._order.vm}")

    async def _begin_copies(self, address: DirectAddress) -> None:
        values = self._order.values
        there = self.destination.qemu
        port = values.get("disks_port")
        server = dict(
            await copies.export(
                there.monitor,
                self._copies,
                address.disks,
                port if isinstance(port, int) else None,
                str(there.path.with_name(SOCKET)),
            )
        )
        if "host" in server:
            server["host"] = address.connect
        limit = values.get("max_bandwidth_bytes_per_s")
        how = copies.How(
            values.get("copy_storage_incremental") is True,
            values.get("copy_synchronous_writes") is True,
            limit if isinstance(limit, int) else 0,
        )
        await copies.mirror(self.source.qemu.monitor, self._copies, server, how)

    async def _drop_copies(self) -> None:
        """Whatever the migration's end. What cannot be removed now is once it is finalized."""
        if not self._copies:
            return
        with contextlib.suppress(VmtuneError):
            await copies.drop(self.source.qemu.monitor)
        with contextlib.suppress(VmtuneError):
            await copies.unexport(self.destination.qemu.monitor)

    async def _copy_first(self, uri: str) -> VmtuneError | None:
        """Wait until the disks are copied, and begin to send the memory."""
        monitor = self.source.qemu.monitor
        try:
            while not await copies.all_ready(monitor, self._copies):
                if self.aborted:
                    break
                await asyncio.sleep(_COPIES_EVERY_S)
            if self.aborted:
                return _ended_badly(Snapshot(QemuStatus.CANCELLED))
            self.copying = False
            await monitor.execute("migrate", {"uri": uri})
        except CommandRefused as refusal:
            return refusal
        except VmtuneError as error:
            return OutcomeUnknown(error.message, remedy="look again how it ended")
        return None

    async def _look_at_both(self) -> None:
        """What is set now, noted before anything is."""
        there = await self.destination.look(_values_of(self._order, _DESTINATION))
        here = await self.source.look(_values_of(self._order, _SOURCE))
        if self._order.note_prior is not None:
            await self._order.note_prior(PriorSettings(here, there))

    async def _listen(self, address: DirectAddress) -> str:
        """Make the destination listen; what to connect to."""
        qemu = self.destination.qemu
        uri = _tcp(address.listen, address.port or 0) if address.listen else local_uri(qemu)
        try:
            await qemu.monitor.execute("migrate-incoming", {"uri": uri})
        except CommandRefused as refusal:
            raise CommandRefused(
                f"QEMU on the destination cannot listen on {address.listen or uri}: "
                f"{refusal.message}",
                field="destination",
                code="cannot_listen",
                remedy="set the host's migration_address or listen_address to an address of its "
                "own, and start the waiting QEMU anew if it has listened before",
            ) from refusal
        if not address.listen:
            return uri
        if address.port:
            return _tcp(address.connect, address.port)
        reply = await qemu.monitor.execute("query-migrate")
        ports = [a["port"] for a in reply.get("socket-address", ()) if a.get("type") == "inet"]
        if not ports:
            raise CommandRefused(
                "QEMU on the destination does not say on which port it listens",
                field="destination",
                code="cannot_listen",
            )
        return _tcp(address.connect, ports[0])

    @property
    def done(self) -> bool:
        """Whether :meth:`wait` would return at once."""
        return self._follower is not None and self._follower.done()

    async def wait(self) -> None:
        """Return when the migration has succeeded.

        :raise CommandRefused: it failed (``migration_failed``) or was aborted
            (``migration_cancelled``).
        :raise OutcomeUnknown: the connection was lost.
        """
        assert self._follower is not None, "begin() comes first"
        await asyncio.wait([self._follower])
        if self._follower.cancelled():
            raise OutcomeUnknown(
                "vmtune let go of the monitor while the migration was under way",
                remedy="look again how it ended",
            )
        error = self._follower.result()
        if error is not None:
            raise error

    def when_done(self, call: Callable[[], object]) -> None:
        """Call back once :attr:`done`."""
        assert self._follower is not None, "begin() comes first"
        self._follower.add_done_callback(lambda _: call())

    async def let_go(self) -> None:
        """Stop following. The migration continues."""
        if self._follower is not None and not self._follower.done():
            self._follower.cancel()
            await asyncio.wait([self._follower])

    async def _follow(self, uri: str) -> VmtuneError | None:
        """Wait for the end; what went wrong, which :meth:`wait` raises."""
        error = await self._copy_first(uri) if self._copies else None
        if error is None:
            error = await self._end()
        if not isinstance(error, OutcomeUnknown):  # else it may go on, and needs its copies
            await self._drop_copies()
            try:
                await self.arrival.ended(completed=error is None)
            except VmtuneError as failed:
                return OutcomeUnknown(
                    f"the guest has arrived and was not started: {failed.message}",
                    remedy="look whether it runs on the destination",
                )
        return error

    async def _end(self) -> VmtuneError | None:
        incomplete = 0
        switchover = Switchover(self.source.qemu.monitor, self.destination.qemu.monitor)
        while True:
            try:
                snapshot = await self._look()
            except VmtuneError as error:
                return OutcomeUnknown(error.message, remedy="look again how it ended")
            if self._waits(snapshot) and not switchover.told:
                try:
                    await switchover.look()
                except VmtuneError:
                    await asyncio.sleep(_COPIES_EVERY_S)
            elif snapshot.status is QemuStatus.COMPLETED:
                # 7.2 says so before the figures are there.
                incomplete += 1
                if snapshot.final or incomplete > _TOTALS_ATTEMPTS:
                    return None
                await asyncio.sleep(_TOTALS_AFTER_S)
            elif snapshot.final or snapshot.status is QemuStatus.NONE:
                broken = None if self.aborted else switchover.broken
                return broken or _ended_badly(snapshot)
            else:
                await self._news_of_it()

    def _waits(self, snapshot: Snapshot) -> bool:
        """Whether QEMU waits with the switchover for the copies' end."""
        return bool(self._copies) and snapshot.status is QemuStatus.PRE_SWITCHOVER

    async def _look(self) -> Snapshot:
        monitor = self.source.qemu.monitor
        if monitor.connections != self._connection:
            raise OutcomeUnknown("the connection to QEMU was lost, and it may be another now")
        reply = await monitor.execute("query-migrate")
        with reading_reply("its migration"):
            snapshot = read_query_migrate(reply)
        return as_cancelled(snapshot) if self.aborted else snapshot

    async def _news_of_it(self) -> None:
        """Until this migration's status has changed, or it is time to look anyway."""
        try:
            async with asyncio.timeout(_LOOK_EVERY_S):
                async for event in self._news:
                    if event.vm == self.source.qemu.uuid and event.kind in _NEWS:
                        return
                await asyncio.sleep(_LOOK_EVERY_S)
        except TimeoutError:
            return


_NEWS = (EventKind.MIGRATION_STATUS, EventKind.CONNECTION_LOST)


def as_cancelled(snapshot: Snapshot) -> Snapshot:
    """What QEMU says of a migration that it was asked to cancel. migration_cancel of QEMU 10's
    migration/migration.c closes the return path before it sets the state, and the migration's
    thread may take that for a failure ("Channel error")."""
    if snapshot.status is not QemuStatus.FAILED:
        return snapshot
    return replace(snapshot, status=QemuStatus.CANCELLED, error="")


def _ended_badly(snapshot: Snapshot) -> CommandRefused:
    if snapshot.status is QemuStatus.CANCELLED:
        return CommandRefused("the migration was cancelled", code=MIGRATION_CANCELLED)
    reason = snapshot.error or "QEMU gives no reason; see what it wrote to its standard error"
    return CommandRefused(f"the migration failed: {reason}", code="migration_failed")
