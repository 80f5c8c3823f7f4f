"""Measures a running VM's dirty curve."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from vmtune.engine.context import Clock, Monotonic
from vmtune.errors import CommandRefused, Conflict
from vmtune.forecast.probe import WHOLE_SECONDS_MS, WINDOWS_MS, DirtyProbe, pages_per_gib
from vmtune.hypervisor.protocol import Driver
from vmtune.hypervisor.qemu.control import WHOLE_SECONDS
from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.host.facts import VmFacts, VmState
from vmtune.model.host.page_contents import PageSample


async def probe_dirtying(
    driver: Driver, facts: VmFacts, clock: Clock | None = None, *, contents: bool = True
) -> DirtyProbe:
    """Measure it: some 20 s, 15 for a QEMU older than 8.2.

    :param facts: of the VM, just read.
    :param contents: look at pages of the guest, too.
    :raise Conflict: the guest does not run, or migrates.
    :raise CommandRefused: somebody else measures.
    """
    clock = clock or Monotonic()
    if facts.state is not VmState.RUNNING:
        raise Conflict(
            f"the guest does not run: it is {facts.state.value}",
            field="vm",
            code="not_running",
            remedy="ask for a forecast once it runs: a guest at rest dirties nothing",
        )
    if facts.migrating:
        raise Conflict(
            "the VM is being migrated: measuring would disturb it",
            field="vm",
            code="already_migrating",
            remedy="follow the migration: it says how much time is left",
        )
    began = clock.now()
    first = await _sampled(driver, facts) if contents else None
    points = await _measure(driver, facts.uuid, pages_per_gib(facts.memory_bytes))
    resident = await driver.resident_bytes(facts.uuid)
    used = None if resident is None else min(resident, facts.memory_bytes)
    again = await _sampled(driver, facts, first) if first else None
    last = await _sampled(driver, facts) if first else None  # it may use more by now
    took_ms = (clock.now() - began) * 1000
    return DirtyProbe(
        points,
        facts.memory_bytes,
        used,
        datetime.now(UTC),
        took_ms,
        last.contents if last else None,
        again.changed if again else None,
        None if last is None else _held(last, facts.memory_bytes),
    )


def _held(sample: PageSample, memory_bytes: int) -> int | None:
    if sample.there_share is None:
        return None
    return round(memory_bytes * sample.there_share * (1 - sample.contents.zero_share))


async def _sampled(
    driver: Driver, facts: VmFacts, before: PageSample | None = None
) -> PageSample | None:
    return await driver.sample_pages(facts.uuid, facts.memory_bytes, before)


async def _measure(driver: Driver, vm: UUID, pages: int) -> tuple[DirtyPoint, ...]:
    try:
        return tuple([await driver.sample_dirtied(vm, ms, pages) for ms in WINDOWS_MS])
    except CommandRefused as refusal:
        if refusal.problems[0].code != WHOLE_SECONDS:
            raise
    return tuple([await driver.sample_dirtied(vm, ms, pages) for ms in WHOLE_SECONDS_MS])
