"""Peer-to-peer migrations by libvirt: their arguments, and a thread for each."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from vmtune.errors import CommandRefused, OutcomeUnknown, VmtuneError
from vmtune.hypervisor.guard import OPEN, Guard
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.calls.domain import Domain, Parameters
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.hypervisor.libvirt.migrating import between_hosts
from vmtune.hypervisor.libvirt.threads import may_be_left, settle
from vmtune.model.migration.record import Snapshot
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.texts import TextForm, targets
from vmtune.model.tunables.tunable import LibvirtKind, Route, Tunable, Value

UNLIMITED_MIB_PER_S = 8796093022207
"""libvirt's greatest bandwidth, the most that fits QEMU's int64 in bytes. 0 would mean the limit
set with virDomainMigrateSetMaxSpeed."""

_ROUNDED_S = 0.002
"""libvirt counts a job's age in whole milliseconds."""

_COMPRESSION = "compression"
_COMPRESSED = "VIR_MIGRATE_COMPRESSED"
_METHODS = {"xbzrle": "xbzrle", "compress": "mt"}
"""Compressions that are switched on rather than chosen, by libvirt's names for them."""


@dataclass(frozen=True, slots=True)
class MigrationArguments:
    """What virDomainMigrateToURI3 is called with for a profile.

    :param flags: names of the flags.
    """

    flags: tuple[str, ...] = ()
    parameters: Parameters = field(default_factory=dict)


def migration_arguments(values: Mapping[str, Value]) -> MigrationArguments:
    """The ``migrate`` route's *values* as libvirt's flags and typed parameters.

    Off, ``none`` and what libvirt decides on its own (see the table) need no argument:
    libvirt switches off what is not requested.

    :raise CommandRefused: a bandwidth that is no whole number of MiB/s, or a tunable that is
        not libvirt's to set; with its field.
    """
    flags: list[str] = []
    parameters: dict[str, int | str | list[str]] = {}
    methods: list[str] = []
    for name, value in values.items():
        row = BUILT_IN[name]
        libvirt = row.libvirt
        if row.route is not Route.MIGRATE or libvirt is None:
            raise CommandRefused(
                f"{name} is not a setting of libvirt's migration",
                field=f"values.{name}",
                code="not_a_migration_setting",
            )
        match libvirt.kind:
            case LibvirtKind.AUTOMATIC:
                continue
            case LibvirtKind.FLAG:
                if value is True:
                    flags.append(libvirt.name)
            case LibvirtKind.PARAMETER if libvirt.name == _COMPRESSION:
                if value is not False and value != "none":
                    methods += [_METHODS[name] if value is True else str(value)]
            case LibvirtKind.PARAMETER if row.form is TextForm.TARGETS:
                parameters[libvirt.name] = targets(str(value))
            case LibvirtKind.PARAMETER:
                parameters[libvirt.name] = _scaled(row, value)
            case _:
                raise AssertionError(
                    f"{name}: {libvirt.kind.value} is not an argument of a migration"
                )
    if methods:
        flags.append(_COMPRESSED)
        parameters[_COMPRESSION] = methods
    return MigrationArguments(tuple(flags), parameters)


def _scaled(row: Tunable, value: Value) -> int | str:
    """*value* in libvirt's unit."""
    if isinstance(value, str):
        return value
    scale = row.libvirt.scale if row.libvirt else 1
    if value % scale:
        raise CommandRefused(
            f"libvirt takes whole MiB/s, and {row.render(value)} is none",
            field=f"values.{row.name}",
            code="not_whole_mib",
            remedy=f"set {value // scale}MiB/s or {value // scale + 1}MiB/s",
        )
    if row.name == "max_bandwidth_bytes_per_s":
        return min(value // scale or UNLIMITED_MIB_PER_S, UNLIMITED_MIB_PER_S)
    return value // scale


def migration_flags(persistent: bool) -> tuple[str, ...]:
    """The flags of every migration: a VM keeps being persistent or transient, and stays
    defined on one host only."""
    always = ("VIR_MIGRATE_LIVE", "VIR_MIGRATE_PEER2PEER")
    if not persistent:
        return always
    return (*always, "VIR_MIGRATE_PERSIST_DEST", "VIR_MIGRATE_UNDEFINE_SOURCE")


class LibvirtMigration:
    """A :class:`~vmtune.hypervisor.protocol.MigrationHandle`.

    It has a connection and a daemon thread of its own: the call takes as long as the
    migration does. The daemons continue when this process ends in any way.

    :param before: what QEMU said of an earlier migration, before the call.
    """

    def __init__(self, before: Snapshot | None = None) -> None:
        self.begun = True
        self._before = before
        self._called_s = math.inf
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        may_be_left(self._ended)

    async def begin(
        self,
        vm: UUID,
        destination: str,
        arguments: MigrationArguments,
        connect: Callable[[], Connection],
        guard: Guard = OPEN,
    ) -> None:
        """Return once the call has been handed to libvirt: a peer-to-peer migration, which the
        source's daemon runs.

        :param destination: the other daemon's URI, as the source's reaches it.
        :param connect: opens a connection; blocks.
        :raise VmtuneError: there is no connection, or no such VM.
        """
        await guard.wait()
        loop = asyncio.get_running_loop()
        begun: asyncio.Future[None] = loop.create_future()

        def run() -> None:
            try:
                connection = connect()
            except VmtuneError as error:
                settle(begun, _raising(error))
                return
            try:
                domain = connection.domain(vm)
                flags = connection.library.flags(*arguments.flags)
                guard.check()
            except VmtuneError as error:
                settle(begun, _raising(error))
            else:
                self._called_s = time.monotonic()
                settle(begun, lambda: None)
                settle(
                    self._ended, lambda: _migrate(domain, destination, arguments.parameters, flags)
                )
            finally:
                connection.close()

        name = f"migration-{str(vm)[:8]}"
        threading.Thread(target=run, name=name, daemon=True).start()
        await begun

    @property
    def done(self) -> bool:
        """Whether :meth:`wait` would return at once."""
        return self._ended.done()

    def is_not(self, seen: Snapshot, job_ms: int | None) -> bool:
        """Whether *seen* is certainly not this migration, but an earlier one, or another's that
        libvirt was busy with when it was called.

        :param seen: what QEMU says.
        :param job_ms: for how long libvirt's job has been a migration, asked after that; None if it
            is none.
        """
        if seen == self._before:
            return True
        if not seen.status.running or job_ms is None:
            return False
        return time.monotonic() - job_ms / 1000 < self._called_s - _ROUNDED_S

    async def wait(self) -> None:
        """Return when the migration has succeeded.

        :raise CommandRefused: libvirt's words on why it did not.
        :raise OutcomeUnknown: the connection was lost.
        """
        await asyncio.wait([self._ended])
        if self._ended.cancelled():
            raise OutcomeUnknown("vmtune let go of the migration", remedy="look again")
        error = self._ended.exception()
        if error is not None:
            raise error

    def let_go(self) -> None:
        """Stop waiting. The migration continues."""
        self._ended.cancel()


def _migrate(domain: Domain, destination: str, parameters: Parameters, flags: int) -> None:
    """:raise LibvirtRefused: with the cause, where the way between the hosts is one."""
    try:
        domain.migrate(destination, parameters, flags)
    except LibvirtRefused as refusal:
        raise between_hosts.with_cause(destination, refusal) from None


def _raising(error: VmtuneError) -> Callable[[], None]:
    def call() -> None:
        raise error

    return call
