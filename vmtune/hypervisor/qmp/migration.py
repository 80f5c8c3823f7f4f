"""A live migration between two QEMUs that are managed by their monitors alone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping

from vmtune.errors import CommandRefused, OutcomeUnknown, VmtuneError
from vmtune.hypervisor.event_hub import Subscription
from vmtune.hypervisor.protocol import EventKind, MigrateOrder
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.hypervisor.qemu.write import write
from vmtune.hypervisor.qmp.qemu import Qemu
from vmtune.model.migration.record import QemuStatus, Snapshot, read_query_migrate
from vmtune.model.plan.changes import Change, in_order, undo
from vmtune.model.tunables import tunable as tunables
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import QmpKind, Route, Value

_LOOK_EVERY_S = 0.5
_TOTALS_AFTER_S = 0.02
_TOTALS_ATTEMPTS = 250

_MIGRATE = [row for row in BUILT_IN.values() if row.route is Route.MIGRATE]
_CAPABILITIES = [r for r in _MIGRATE if r.qmp and r.qmp.kind is QmpKind.CAPABILITY]


class Endpoint:
    """One of the two QEMUs, and what has to be set there to restore it."""

    def __init__(self, name: str, qemu: Qemu) -> None:
        self.name = name
        self.qemu = qemu
        self.prior: list[Change] = []

    async def prepare(self, values: Mapping[str, Value]) -> None:
        """Set *values*, and switch off every capability for migrations that they do not
        name, so that what runs is what was requested. Parameters that are not named stay.

        :raise CommandRefused: QEMU refused one, which is named, and the side too.
        """
        names = {*values, *(row.name for row in _CAPABILITIES)}
        readings = await self.qemu.probe.read(names)
        changes = [Change(name, value) for name, value in values.items()]
        changes += (
            Change(row.name, False)
            for row in _CAPABILITIES
            if row.name not in values and readings[row.name].value is not None
        )
        self.prior = in_order(undo(changes, readings), readings)
        monitor = self.qemu.monitor
        try:
            await write(monitor, in_order(changes, readings), BUILT_IN)
            await monitor.execute("migrate-set-capabilities", {"capabilities": [_EVENTS_ON]})
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
            await write(monitor, self.prior, BUILT_IN)
        except VmtuneError:
            for change in self.prior:
                with contextlib.suppress(VmtuneError):
                    await write(monitor, [change], BUILT_IN)


_EVENTS_ON = {"capability": "events", "state": True}


async def defaults(qemu: Qemu) -> list[Change]:
    """QEMU's defaults of the ``migrate`` route, for what *qemu* offers."""
    readings = await qemu.probe.read([row.name for row in _MIGRATE])
    changes = [
        Change(row.name, row.default)
        for row in _MIGRATE
        if row.default is not None and readings[row.name].value is not None
    ]
    return in_order(changes, readings)


def _values_of(order: MigrateOrder, side: tunables.Side) -> dict[str, Value]:
    """The order's values for one side."""
    named = {n: v for n, v in order.values.items() if BUILT_IN[n].side in (side, _BOTH)}
    return {**named, **order.destination_values} if side is _DESTINATION else named


_BOTH = tunables.Side.BOTH
_SOURCE = tunables.Side.SOURCE
_DESTINATION = tunables.Side.DESTINATION


class DirectMigration:
    """A :class:`~vmtune.hypervisor.protocol.MigrationHandle`.

    :param news: the source's events, which save waiting for the next look.
    """

    def __init__(
        self, source: Endpoint, destination: Endpoint, order: MigrateOrder, news: Subscription
    ) -> None:
        self.source = source
        self.destination = destination
        self._order = order
        self._news = news
        self._connection = source.qemu.monitor.connections
        self._follower: asyncio.Task[VmtuneError | None] | None = None

    async def begin(self, address: str) -> None:
        """Prepare both sides, make the destination listen, and start.

        :param address: what the destination listens on; empty for a socket next to its monitor.
        :raise OutcomeUnknown: the connection was lost at the start: it may have begun.
        :raise VmtuneError: it could not be started; both sides were restored.
        """
        begins = False
        try:
            await self.destination.prepare(_values_of(self._order, _DESTINATION))
            await self.source.prepare(_values_of(self._order, _SOURCE))
            uri = await self._listen(address)
            begins = True
            await self.source.qemu.monitor.execute("migrate", {"uri": uri})
        except VmtuneError as error:
            if not (begins and isinstance(error, OutcomeUnknown)):
                await self.source.put_back()
                await self.destination.put_back()
            raise
        self._follower = asyncio.create_task(self._follow(), name=f"migration {self._order.vm}")

    async def _listen(self, address: str) -> str:
        """Make the destination listen; where."""
        qemu = self.destination.qemu
        host = f"[{address}]" if ":" in address and not address.startswith("[") else address
        # Shorter than the monitor's path, so it fits too. QEMU removes the socket when it
        # stops listening, and before it listens again.
        local = f"unix:{qemu.path.with_name('.' + qemu.path.stem)}"
        try:
            await qemu.monitor.execute(
                "migrate-incoming", {"uri": f"tcp:{host}:0" if address else local}
            )
        except CommandRefused as refusal:
            raise CommandRefused(
                f"QEMU on the destination cannot listen on {address or local}: {refusal.message}",
                field="destination",
                code="cannot_listen",
                remedy="set the host's migration_address to an address of its own, and start "
                "the waiting QEMU anew if it has listened before",
            ) from refusal
        if not address:
            return local
        reply = await qemu.monitor.execute("query-migrate")
        ports = [a["port"] for a in reply.get("socket-address", ()) if a.get("type") == "inet"]
        if not ports:
            raise CommandRefused(
                "QEMU on the destination does not say on which port it listens",
                field="destination",
                code="cannot_listen",
            )
        return f"tcp:{host}:{ports[0]}"

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

    async def _follow(self) -> VmtuneError | None:
        """Wait for the end; what went wrong, which :meth:`wait` raises."""
        incomplete = 0
        while True:
            try:
                snapshot = await self._look()
            except VmtuneError as error:
                return OutcomeUnknown(error.message, remedy="look again how it ended")
            if snapshot.status is QemuStatus.COMPLETED:
                # 7.2 says so before the figures are there.
                incomplete += 1
                if snapshot.final or incomplete > _TOTALS_ATTEMPTS:
                    return None
                await asyncio.sleep(_TOTALS_AFTER_S)
            elif snapshot.final or snapshot.status is QemuStatus.NONE:
                return _ended_badly(snapshot)
            else:
                await self._news_of_it()

    async def _look(self) -> Snapshot:
        monitor = self.source.qemu.monitor
        if monitor.connections != self._connection:
            raise OutcomeUnknown("the connection to QEMU was lost, and it may be another now")
        reply = await monitor.execute("query-migrate")
        with reading_reply("its migration"):
            return read_query_migrate(reply)

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


def _ended_badly(snapshot: Snapshot) -> CommandRefused:
    if snapshot.status is QemuStatus.CANCELLED:
        return CommandRefused("the migration was cancelled", code="migration_cancelled")
    reason = snapshot.error or "QEMU gives no reason; see what it wrote to its standard error"
    return CommandRefused(f"the migration failed: {reason}", code="migration_failed")
