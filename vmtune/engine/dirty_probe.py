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


async def probe_dirtying(
    driver: Driver, facts: VmFacts, clock: Clock | None = None, windows_ms: tuple[int, ...] = ()
) -> DirtyProbe:
    """Measure it: some 17 s, 15 for a QEMU older than 8.2.

    :param facts: of the VM, just read.
    :param windows_ms: instead of the usual times.
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
    points = await _measure(driver, facts.uuid, facts.memory_bytes, windows_ms)
    resident = await driver.resident_bytes(facts.uuid)
    used = None if resident is None else min(resident, facts.memory_bytes)
    took_ms = (clock.now() - began) * 1000
    return DirtyProbe(points, facts.memory_bytes, used, datetime.now(UTC), took_ms)


async def _measure(
    driver: Driver, vm: UUID, memory_bytes: int, windows_ms: tuple[int, ...]
) -> tuple[DirtyPoint, ...]:
    pages = pages_per_gib(memory_bytes)
    points: list[DirtyPoint] = []
    windows = windows_ms or WINDOWS_MS
    for over_ms in windows:
        try:
            points.append(await driver.sample_dirtied(vm, over_ms, pages))
        except CommandRefused as refusal:
            if refusal.problems[0].code != WHOLE_SECONDS or windows == WHOLE_SECONDS_MS:
                raise
            return await _measure(driver, vm, memory_bytes, WHOLE_SECONDS_MS)
    return tuple(points)
