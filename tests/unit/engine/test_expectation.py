"""What is expected of a running migration follows from its samples and what QEMU has set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from uuid import UUID

from tests.support.examples.migrations import SimulatedClock
from tests.support.simulated.fakes import VM
from vmtune.engine.expectation import Expectation
from vmtune.errors import HostUnreachable
from vmtune.forecast.outlook import Outlook
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.host.facts import Reading
from vmtune.model.migration.record import QemuStatus, Sample, Snapshot
from vmtune.model.tunables.tunable import Value

PAGE = 4096
MIB = 1 << 20
PASS_MS = 1000
SENT_BYTES_PER_S = 100 * MIB


class Source:
    """A host that reads what it is told, or does not answer."""

    def __init__(self, **values: Value) -> None:
        self.values: dict[str, Value] = values
        self.silent = False
        self.reads = 0
        self.looked_up = 0

    async def look_up(self) -> Driver:
        self.looked_up += 1
        return cast("Driver", self)

    async def read(self, vm: UUID, names: Sequence[str]) -> Mapping[str, Reading]:
        self.reads += 1
        if self.silent:
            raise HostUnreachable("no answer")
        return {name: Reading(self.values.get(name)) for name in names}


class Migrated:
    """A guest that dirties all its 100 MiB again in each pass of a second, at 100 MiB/s."""

    def __init__(self, source: Source) -> None:
        self.clock = SimulatedClock()
        self.asked = 0
        self._expectation = Expectation(VM, source.look_up, self._measured, self.clock)
        self._sent = 0

    async def at(self, seconds: float) -> Outlook:
        """Sampled every 100 ms up to *seconds*."""
        outlook = Outlook(None)
        while self.clock.at < seconds:
            await self.clock.sleep(0.1)
            outlook = await self._expectation.after(Snapshot(QemuStatus.ACTIVE, self._sample()))
        return outlook

    async def _measured(self) -> Sequence[DirtyPoint]:
        self.asked += 1
        return ()

    def _sample(self) -> Sample:
        at_ms = round(self.clock.at * 1000)
        sent = SENT_BYTES_PER_S * at_ms // 1000
        into_pass_ms = at_ms % PASS_MS
        fields: dict[str, Any] = dict.fromkeys(Sample.__annotations__, 0)
        fields |= {
            "at_ms": at_ms,
            "status": QemuStatus.ACTIVE,
            "iteration": 1 + at_ms // PASS_MS,
            "boundary": False,
            "remaining_bytes": SENT_BYTES_PER_S * (PASS_MS - into_pass_ms) // 1000,
            "total_bytes": 1024 * MIB,
            "transferred_bytes": sent,
            "normal_pages": sent // PAGE,
            "page_size_bytes": PAGE,
            "expected_downtime_ms": None,
        }
        return Sample(**fields)


async def test_the_downtime_limit_that_qemu_has_decides() -> None:
    source = Source(downtime_limit_ms=100)
    migrated = Migrated(source)
    outlook = await migrated.at(8)
    assert outlook.ends is False
    assert outlook.needs is not None and outlook.needs.downtime_limit_ms is not None
    source.values["downtime_limit_ms"] = round(2 * outlook.needs.downtime_limit_ms)
    assert (await migrated.at(16)).ends is True


async def test_what_the_migration_was_not_started_for_is_not_named() -> None:
    source = Source(downtime_limit_ms=100, auto_converge=False, postcopy=False)
    needs = (await Migrated(source).at(8)).needs
    assert needs is not None and needs.downtime_limit_ms is not None
    assert (needs.throttle_percent, needs.postcopy) == (None, False)
    source.values |= {"postcopy": True}
    needs = (await Migrated(source).at(8)).needs
    assert needs is not None and needs.postcopy
    del source.values["auto_converge"], source.values["postcopy"]  # nobody knows
    needs = (await Migrated(source).at(8)).needs
    assert needs is not None and needs.throttle_percent is not None and needs.postcopy


async def test_a_throttle_that_will_come_counts() -> None:
    assert (await Migrated(Source(downtime_limit_ms=100, auto_converge=False)).at(8)).ends is False
    assert (await Migrated(Source(downtime_limit_ms=100, auto_converge=True)).at(8)).ends is True


async def test_what_cannot_be_read_stays_as_it_was() -> None:
    source = Source(downtime_limit_ms=5000)
    migrated = Migrated(source)
    assert (await migrated.at(8)).ends is True
    source.silent = True
    assert (await migrated.at(16)).ends is True
    assert source.reads >= 3


async def test_the_host_is_not_asked_for_each_sample() -> None:
    source = Source(downtime_limit_ms=300)
    await Migrated(source).at(10)
    assert 2 <= source.looked_up <= 3


async def test_without_figures_nothing_is_expected() -> None:
    async def nothing() -> Sequence[DirtyPoint]:
        return ()

    expectation = Expectation(VM, Source().look_up, nothing, SimulatedClock())
    assert await expectation.after(Snapshot(QemuStatus.SETUP)) == Outlook(None)


async def test_what_was_measured_before_is_asked_for_once() -> None:
    migrated = Migrated(Source(downtime_limit_ms=100))
    await migrated.at(0.9)
    assert migrated.asked == 0, "what the guest dirties counts from the second pass on"
    await migrated.at(8)
    assert migrated.asked == 1
