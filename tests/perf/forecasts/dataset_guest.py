"""A guest that migrates from one QEMU to the next, again and again, without a restart.

Starting a guest and warming it up takes longer than most migrations. So it stays up: the QEMU that
it arrived at is the source of the next migration, and a fresh one waits as its destination. What a
migration has set on a QEMU is set back to what the fresh one has before the next.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from tests.perf.machine_load import Counters, between, counters
from vmtune.bench.migration.command_line import QemuFiles, command_line
from vmtune.bench.migration.direct_stage import BenchQemu, DirectStage, guest_program
from vmtune.bench.migration.guest_listener import GuestListener, GuestReport
from vmtune.bench.migration.measured import MeasuredMigration, Verdict, plan_run
from vmtune.bench.migration.order import DEFAULT_QEMU, RunOrder
from vmtune.bench.migration.recorder import Recorder
from vmtune.bench.migration.stage import Side, finish
from vmtune.bench.model.runs.run import HostSide, RunRecord, RunState
from vmtune.bench.model.scenario.migration import Scenario
from vmtune.bench.model.settable import settable
from vmtune.bench.qemu_process import find_qemu
from vmtune.bench.run_folder import clear_left_behind, run_folder
from vmtune.engine.dirty_probe import probe_dirtying
from vmtune.errors import SetupError
from vmtune.forecast.probe import DirtyProbe
from vmtune.hypervisor.qmp.driver import QmpDriver
from vmtune.lab.domain_xml import kvm_usable

_STARTS_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.05
_SETTLES_S = 0.4
"""After a migration: until the guest's first beats on the destination came, and it has mapped again
what it works on."""


@dataclass(frozen=True, slots=True)
class Went:
    """How one migration went.

    :param load: of the machine while it migrated.
    """

    verdict: Verdict
    record: RunRecord
    load: dict[str, float | None]


class _Qemu:
    """One of the QEMUs, by what the harness and by what vmtune has of it."""

    def __init__(self, command: list[str], own: Path, monitors: Path) -> None:
        self.process = BenchQemu(command, own)
        self.driver = QmpDriver(f"qmp+unix://{monitors}", "127.0.0.1", tunables=settable())
        self.side = Side(monitors.name, self.driver)

    async def end(self) -> None:
        await asyncio.gather(self.driver.close(), self.process.end(), return_exceptions=True)


class WanderingGuest:
    """The guest of a workload, where it runs now. Made by :func:`wandering_guest`."""

    def __init__(self, folder: Path, scenario: Scenario, listener: GuestListener) -> None:
        self._folder = folder
        self._scenario = scenario
        self._listener = listener
        self._vm: UUID = uuid4()
        self._kvm = kvm_usable()
        self._started = 0
        self._runs_on: _Qemu | None = None
        self._waits: _Qemu | None = None

    async def start(self) -> None:
        """Start it, and let it write to all of its region.

        :raise SetupError: it does not start.
        """
        self._runs_on = self._start(incoming=False)
        await self._runs_on.process.listens()
        deadline = time.monotonic() + _STARTS_WITHIN_S
        while self._listener.start() is None:
            fault = self._listener.fault()
            if fault is not None or not self.lives or time.monotonic() > deadline:
                raise SetupError("the guest did not start", code="guest_did_not_start")
            await self._listener.wait_for_report(_LOOK_EVERY_S)
        await asyncio.sleep(self._scenario.warmup_s)

    @property
    def lives(self) -> bool:
        """Whether the QEMU that it runs on does."""
        return self._runs_on is not None and self._runs_on.process.process.poll() is None

    def reports(self) -> list[GuestReport]:
        """What it has told so far."""
        return self._listener.reports()

    async def probe(self) -> tuple[DirtyProbe, dict[str, float | None]]:
        """What it dirties, and the load of the machine meanwhile."""
        assert self._runs_on is not None
        begin = counters()
        facts = await self._runs_on.driver.vm_facts(self._vm)
        found = await probe_dirtying(self._runs_on.driver, facts)
        return found, between(begin, counters())

    async def migrate(self, scenario: Scenario) -> Went:
        """To the next QEMU; where that fails, it stays where it is.

        :param scenario: of the same guest and workload.
        :raise VmtuneError: it could not be started.
        """
        assert self._runs_on is not None
        await self._have_a_fresh_one()
        source, destination = self._runs_on, self._waits
        assert destination is not None
        await _set_back(source.process, destination.process)
        stage = DirectStage(
            self._vm,
            self._kvm,
            self._listener,
            {HostSide.SOURCE: source.side, HostSide.DESTINATION: destination.side},
            {HostSide.SOURCE: source.process, HostSide.DESTINATION: destination.process},
        )
        self._listener.forget_silences()
        recorder = Recorder(stage, time.monotonic())
        begun: list[Counters] = []
        order = RunOrder(scenario)
        migration = MeasuredMigration(order, scenario, stage, recorder, lambda _: None)
        recorder.start()
        try:
            plan = await plan_run(stage, scenario.values, order.overrides)
            begun.append(counters())
            verdict = await migration.run(plan)
            ended = counters()
            await asyncio.sleep(_SETTLES_S)
            record = recorder.record(migration.controllers)
        finally:
            await recorder.stop()
        self._waits = None
        if verdict.state is RunState.COMPLETED:
            self._runs_on, destination = destination, source
        await destination.end()
        return Went(verdict, record, between(begun[0], ended))

    async def end(self) -> None:
        """Nothing is left of it."""
        for qemu in (self._runs_on, self._waits):
            if qemu is not None:
                await qemu.end()

    def _start(self, *, incoming: bool) -> _Qemu:
        monitors = self._folder / str(self._started)
        own = self._folder / f"{self._started}.own"
        self._started += 1
        monitors.mkdir()
        program = find_qemu(DEFAULT_QEMU)
        files = QemuFiles(
            program, None, self._folder / "guest.elf", self._folder, monitors / "qemu.sock", own
        )
        command = command_line(files, self._scenario, self._vm, kvm=self._kvm, incoming=incoming)
        return _Qemu(command, own, monitors)

    async def _have_a_fresh_one(self) -> None:
        """Started only now: one that waits would take CPU from what is measured."""
        if self._waits is None:
            self._waits = self._start(incoming=True)
        await self._waits.process.listens()


@asynccontextmanager
async def wandering_guest(base: Path, scenario: Scenario) -> AsyncIterator[WanderingGuest]:
    """The guest of *scenario*, warmed up; nothing is left of it afterwards, nor of an earlier one
    that was killed.

    :param base: its sockets are in a folder of its own in here.
    :raise SetupError: it does not start.
    """
    await asyncio.to_thread(clear_left_behind, base)
    with run_folder(base) as folder:
        kernel = folder / "guest.elf"
        await asyncio.to_thread(lambda: kernel.write_bytes(guest_program()))
        listener = GuestListener(folder, scenario.workload.beat_ms)
        guest = WanderingGuest(folder, scenario, listener)
        try:
            await guest.start()
            yield guest
        finally:
            await finish(_take_down(guest, listener))


async def _take_down(guest: WanderingGuest, listener: GuestListener) -> None:
    try:
        await guest.end()
    finally:
        await asyncio.to_thread(listener.close)


async def _set_back(used: BenchQemu, fresh: BenchQemu) -> None:
    """Give *used* the capabilities and parameters of migrations that *fresh* has."""
    before, after = [await _capabilities(qemu) for qemu in (used, fresh)]
    differing = [
        {"capability": name, "state": state}
        for name, state in after.items()
        if before.get(name) != state
    ]
    if differing:
        await used.monitor.execute("migrate-set-capabilities", {"capabilities": differing})
    set_to: dict[str, Any]  # any: JSON of QMP
    wanted: dict[str, Any]  # any: the same
    set_to, wanted = [
        await qemu.monitor.execute("query-migrate-parameters", {}) for qemu in (used, fresh)
    ]
    changed = {name: value for name, value in wanted.items() if set_to.get(name) != value}
    if changed:
        await used.monitor.execute("migrate-set-parameters", changed)


async def _capabilities(qemu: BenchQemu) -> dict[str, bool]:
    found = await qemu.monitor.execute("query-migrate-capabilities", {})
    return {each["capability"]: each["state"] for each in found}
