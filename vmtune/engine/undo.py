"""Restores what was set for a migration, and tells what could not be."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import structlog

from vmtune.engine.asking import ask_again, may_pass
from vmtune.engine.setting import is_put_back, write_each
from vmtune.errors import NotFound, Problem, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import Connection, Reading
from vmtune.model.migration.prior import Prior
from vmtune.model.migration.record import Migration
from vmtune.model.plan.changes import Change, Readings, in_order
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.tunable import Route, Value

log = structlog.get_logger(__name__)

UNDONE_WITHIN_S = 15.0
"""How long a host that is silent is given in all: what was set would stay."""
NOT_PUT_BACK = "not_put_back"
BOUND = "max_cpu_throttle_percent"
THROTTLES = frozenset({"cpu_throttle_initial_percent", "cpu_throttle_increment_percent"})
"""What libvirt would restore, and cannot where steering has set the bound of the throttle, which
libvirt does not know: QEMU refuses the first throttle of before next to it."""
_T = TypeVar("_T")


class Undo:
    """Restores what one migration has set, once it is certain how it ended.

    :param destination: None where it is not known.
    """

    def __init__(
        self,
        record: Migration,
        source: Driver,
        destination: Driver | None,
        tunables: TunableRegistry,
    ) -> None:
        self._record = record
        self._source = source
        self._destination = destination
        self._tunables = tunables
        self._deadline = time.monotonic() + UNDONE_WITHIN_S

    async def stopped(self, *, resets: bool, libvirt: bool) -> tuple[Problem, ...]:
        """Restore all of a migration that did not complete; return what could not be.

        Without libvirt what was set last is restored first: QEMU may not take an earlier value next
        to it. libvirt restores its own first, and would overwrite what is restored before.

        :param resets: what was set with the start, too.
        """
        problems = () if libvirt else await self.journal()
        if resets:
            problems += await self._reset(self._source, self._record.source, self._prior_here)
            if not libvirt:
                await self._reset_waiting()
        problems += await self.journal() if libvirt else ()
        return (*problems, *await self._lift_dirty_limit())

    async def completed(self, *, libvirt: bool) -> tuple[Problem, ...]:
        """Restore what was set for a migration that completed; return what the guest still has.

        Without libvirt the QEMU that the guest has left is there until somebody ends it, and may be
        where the guest comes back to. What cannot be restored of it at once harms nobody.
        """
        self._deadline = 0
        problems = () if libvirt else await self.journal()
        problems += await self._reset(self._source, self._record.source, self._prior_here)
        for problem in problems:
            log.info("not put back", vm=str(self._record.vm), reason=problem.message)
        if self._destination is None:
            return ()
        self._deadline = time.monotonic() + UNDONE_WITHIN_S
        return await self._reset(self._destination, self._record.destination, self._prior_there)

    @property
    def _prior_here(self) -> Prior | None:
        return self._record.prior.source if self._record.prior else None

    @property
    def _prior_there(self) -> Prior | None:
        return self._record.prior.destination if self._record.prior else None

    async def journal(self) -> tuple[Problem, ...]:
        """Restore the source's journal, except what libvirt has restored; return what could not be
        restored."""
        if not self._record.journal:
            return ()
        try:
            return await self._again(self._restore_journal)
        except NotFound:
            return ()  # its QEMU is gone, and with it what was set
        except VmtuneError as error:
            left = dict.fromkeys(self._record.journal, error.message)
            return self._as_problems(left, self._record.source)

    async def _restore_journal(self) -> tuple[Problem, ...]:
        record, source = self._record, self._source
        by_libvirt = await _restored_by_libvirt(source)
        if any(change.tunable == BOUND for change in record.journal):
            by_libvirt -= THROTTLES
        ours = [change for change in record.journal if change.tunable not in by_libvirt]
        names = {change.tunable for change in ours}
        if not ours:
            return ()
        ordered = in_order(ours, await source.read(record.vm, names))
        refused = await write_each(source.write, record.vm, ordered, may_pass)
        readings = await source.read(record.vm, names)
        left = {
            change: refused.get((change.tunable, change.owner)) or self._read_back(change, readings)
            for change in ours
            if not is_put_back(change, readings)
        }
        return self._as_problems(left, record.source)

    async def _reset(self, driver: Driver, host: str, was: Prior | None) -> tuple[Problem, ...]:
        """Restore what was set on one side with the start; return what could not be.

        :param was: None where the driver itself remembers it, or libvirt restores it.
        """
        vm = self._record.vm
        try:
            await self._again(lambda: driver.reset_after_migration(vm, was))
        except NotFound:
            return ()
        except VmtuneError as error:
            log.info("not reset", vm=str(vm), reason=str(error))
            return await self._left_of(was, driver, host, error.message) if was else ()
        return ()

    async def _reset_waiting(self) -> None:
        """The same of the QEMU that waits for the guest. One that is silent has most likely ended,
        and has no guest whom anything could harm: it is asked once."""
        if self._destination is None:
            return
        try:
            await self._destination.reset_after_migration(self._record.vm, self._prior_there)
        except VmtuneError as error:
            log.info("not reset", vm=str(self._record.vm), reason=str(error))

    async def _left_of(
        self, was: Prior, driver: Driver, host: str, why: str
    ) -> tuple[Problem, ...]:
        """What is not as it was: as it is read, or all of it where the host does not say."""
        try:
            names = {change.tunable for change in was.changes}
            readings = await driver.read(self._record.vm, names)
        except VmtuneError:
            readings = {}
        left = {change: why for change in was.changes if not is_put_back(change, readings)}
        switches = (
            Problem(
                "vm",
                NOT_PUT_BACK,
                f"QEMU's capability {name} was {_on(on)} before the migration, and may not be on "
                f"{host}: {why}",
                f"if it is not: migrate-set-capabilities, {name} {_on(on)}, by QEMU's monitor",
            )
            for name, on in was.switches.items()
        )
        return (*self._as_problems(left, host), *switches)

    async def _lift_dirty_limit(self) -> tuple[Problem, ...]:
        """Have the guest write as it likes, which QEMU holds back on where a migration with the
        dirty limit fails."""
        if self._record.wanted.get("dirty_limit") is not True:
            return ()
        try:
            await self._again(lambda: self._source.lift_dirty_limit(self._record.vm))
        except NotFound:
            return ()  # its QEMU is gone
        except VmtuneError as error:
            why = f"the dirty limit may still hold the guest back: {error.message}"
            remedy = "run cancel-vcpu-dirty-limit by its monitor"
            return (Problem("vm", "still_limited", why, remedy),)
        return ()

    async def _again(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """*work*, which may be repeated, again while the host is silent and there is time."""
        return await ask_again(work, self._deadline - time.monotonic(), may_pass)

    def _as_problems(self, left: Mapping[Change, str], host: str) -> tuple[Problem, ...]:
        """The problems of changes that were not made, each with the reason."""
        return tuple(self._problem(change, host, why) for change, why in left.items())

    def _problem(self, change: Change, host: str, why: str) -> Problem:
        value = self._rendered(change.tunable, change.value)
        name = f"{change.tunable} of {change.owner}" if change.owner else change.tunable
        return Problem(
            f"values.{change.tunable}",
            NOT_PUT_BACK,
            f"{name} was {value} before the migration, and may not be on {host}: {why}",
            f"look what the VM runs with, and set {name} to {value} by hand",
        )

    def _read_back(self, change: Change, readings: Readings) -> str:
        """Why a change that was made is not in effect."""
        reading = readings.get(change.tunable, Reading(None))
        seen = reading.parts.get(change.owner) if change.owner else reading.value
        return reading.why_unknown or f"it reads back as {self._rendered(change.tunable, seen)}"

    def _rendered(self, tunable: str, value: Value | None) -> str:
        if tunable not in self._tunables:  # its pack is no longer loaded
            return str(value)
        return self._tunables[tunable].render(value)


def _on(value: bool) -> str:
    return "on" if value else "off"


async def _restored_by_libvirt(source: Driver) -> frozenset[str]:
    """What libvirt restores to the values before the migration. The journal has what
    libvirt set for it, where vmtune changed that on the way."""
    facts = await source.host_facts()
    if facts.connection is not Connection.LIBVIRT:
        return frozenset()
    return frozenset(
        row.name
        for row in BUILT_IN.on(Route.MIGRATE)
        if row.libvirt is not None and (facts.libvirt is None or row.libvirt.since <= facts.libvirt)
    )
