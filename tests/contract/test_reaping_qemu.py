"""The reaper against real QEMUs with real dirty rings, which takes KVM."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.qemus import qemu
from vmtune.engine.controllers import Controllers
from vmtune.engine.reaper.settings import ReaperSettings
from vmtune.engine.watch import watch
from vmtune.errors import CommandRefused
from vmtune.hypervisor.protocol import MigrateOrder
from vmtune.hypervisor.qmp.driver import QmpDriver
from vmtune.lab.domain_xml import kvm_usable
from vmtune.lab.guest_build import build_guest
from vmtune.model.migration.controller_record import ReaperEnd, ReaperReport
from vmtune.model.migration.record import QemuStatus, Snapshot
from vmtune.model.workload import Workload

NO_KVM = "" if kvm_usable() else "a dirty ring takes KVM, and there is no usable /dev/kvm"
pytestmark = pytest.mark.skipif(bool(NO_KVM), reason=NO_KVM or "never")

VM = UUID("5f5b1f5e-6c0e-4c8f-9d1a-0d9f6a1c7e10")
ENTRIES = 65536
# Its pages fit the ring. In the processor's ring 3 each is noted once until the ring is emptied;
# a KVM that emulates a guest kernel's writes notes every one, so that any ring fills.
WORKLOAD = Workload(region_bytes=64 << 20, cpu_ring=3)
_CANCELLED = pytest.raises(CommandRefused, match="cancelled")


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_guest(tmp_path_factory.mktemp("guest") / "guest")


@dataclass
class Pair:
    """A VM with a ring, and a QEMU that waits for it."""

    source: QmpDriver
    destination: QmpDriver
    qemu: qemu.RunningQemu
    serial: Path
    arrives: Callable[[Path], AbstractContextManager[qemu.RunningQemu]]

    def trackers(self) -> list[int]:
        """Who had QEMU track dirty pages, change by change: 1 the migration, 2 a measurement
        (GLOBAL_DIRTY_* of QEMU's include/exec/memory.h)."""
        word = "global_dirty_changed bitmask "
        lines = [line for line in self.qemu.said().splitlines() if line.startswith(word)]
        return [int(line.removeprefix(word), 16) for line in lines]

    @asynccontextmanager
    async def another_destination(self) -> AsyncIterator[None]:
        """A fresh one: a QEMU listens for a migration once."""
        folder = self.serial.parent / "c"
        with self.arrives(folder):
            self.destination = QmpDriver(f"qmp+unix://{folder}")
            yield
            await self.destination.close()

    async def until_writing(self) -> None:
        """Until the guest writes: firmware comes first, and takes seconds on some machines."""
        async with asyncio.timeout(90):
            while "pass" not in self.serial.read_text():  # noqa: ASYNC110 - a file
                await asyncio.sleep(0.05)

    async def measured(self) -> tuple[int, ...]:
        """What a measurement has found, once it has ended."""
        async with asyncio.timeout(60):
            while True:
                found = await self.source.dirty_rates(VM)
                if found.measured:
                    assert found.measured_ms >= 50
                    return found.vcpu_mib_per_s
                await asyncio.sleep(0.01)

    async def reap(
        self, bandwidth_bytes_per_s: int, abort_after_s: float | None = None
    ) -> ReaperReport:
        """A migration with its reaper: one that does not converge is aborted after a while."""
        controllers = Controllers(self.source, VM, reaper=ReaperSettings())

        async def on_snapshot(snapshot: Snapshot) -> None:
            if snapshot.sample is not None:
                await controllers.on_sample(snapshot.sample)

        async def abort() -> None:
            if abort_after_s is not None:
                await asyncio.sleep(abort_after_s)
                await self.source.abort_migration(VM)

        async with controllers:
            controllers.migration_starts()
            order = MigrateOrder(VM, {"max_bandwidth_bytes_per_s": bandwidth_bytes_per_s}, {})
            handle = await self.source.start_migration(order, self.destination)
            aborting = asyncio.create_task(abort())
            await watch(self.source, VM, 10, on_snapshot, handle)
            await aborting
            with nullcontext() if abort_after_s is None else _CANCELLED:
                await handle.wait()
        assert controllers.report is not None
        return controllers.report


@asynccontextmanager
async def pair(build: qemu.Build, guest: Path, folder: Path) -> AsyncIterator[Pair]:
    here, there, serial = folder / "a", folder / "b", folder / "serial"
    serial.touch()
    vm = (
        *("-machine", "pc", "-accel", f"kvm,dirty-ring-size={ENTRIES}", "-cpu", "qemu64"),
        *("-m", "128", "-nodefaults", "-display", "none"),
        *("-kernel", str(guest), "-append", WORKLOAD.command_line()),
    )
    # Its changes of tracking are written to its standard error, few and short.
    source = ("-serial", f"file:{serial}", "-trace", "enable=global_dirty_changed")
    destination = ("-serial", "null", "-incoming", "defer")

    def arrives(folder: Path) -> AbstractContextManager[qemu.RunningQemu]:
        return qemu.running(build, folder, uuid=VM, machine=vm, extra=destination)

    with (
        qemu.running(build, here, uuid=VM, machine=vm, extra=source) as running,
        arrives(there),
    ):
        drivers = [QmpDriver(f"qmp+unix://{place}") for place in (here, there)]
        try:
            yield Pair(*drivers, running, serial, arrives)
        finally:
            for driver in drivers:
                await driver.close()


async def test_rings_are_reaped_and_no_tracking_stays_on(guest: Path, tmp_path: Path) -> None:
    build = qemu.installed()
    if build.why_not:
        pytest.skip(build.why_not)
    async with pair(build, guest, tmp_path) as it:
        await it.until_writing()
        await it.source.measure_dirty_rates(VM, 3000)
        async with asyncio.timeout(60):
            while not (await it.source.dirty_rates(VM)).measuring:  # noqa: ASYNC110 - asks QEMU
                await asyncio.sleep(0.01)
        with pytest.raises(CommandRefused) as refused:
            await it.source.measure_dirty_rates(VM, 50)
        assert refused.value.problems[0].code == "already_measuring"
        (rate,) = await it.measured()
        assert rate > 10
        assert it.trackers() == [2, 0]

        report = await it.reap(8 << 20, abort_after_s=2.5)
        assert (report.end, report.reason) == (ReaperEnd.MIGRATION_ENDED, "")
        assert report.throughout
        assert report.ring_entries == ENTRIES
        assert report.round_count >= 5
        assert report.filled_rounds == 0, report
        during = [each for each in report.rounds if each.at_ms > 0]
        assert max(each.fullest for each in during) > 0.02
        # The migration's own tracking stayed on through all rounds, and nothing after the last,
        # which may have been under way when the migration was cancelled.
        changes = it.trackers()
        begun = next(n for n, tracking in enumerate(changes) if tracking & 1)
        ended = next(n for n in range(begun, len(changes)) if not changes[n] & 1)
        assert changes[ended:] in ([0], [2, 0], [0, 2, 0])
        assert not (await it.source.dirty_rates(VM)).measuring
        assert (await it.source.migration(VM)).status is QemuStatus.CANCELLED

        async with it.another_destination():
            report = await it.reap(0)
        assert (report.end, report.reason) == (ReaperEnd.MIGRATION_ENDED, "")
        assert (await it.source.migration(VM)).status is QemuStatus.COMPLETED
        assert not (await it.source.dirty_rates(VM)).measuring
        # QEMU puts off the end of all tracking while a guest is stopped, until it runs again.
        await it.source.resume(VM)
        assert it.trackers()[-1] == 0


async def test_an_old_qemu_refuses_and_the_migration_goes_on(guest: Path, tmp_path: Path) -> None:
    build = qemu.old()
    if build.why_not:
        pytest.skip(build.why_not)
    async with pair(build, guest, tmp_path) as it:
        await it.until_writing()  # nobody empties its ring, which a guest kernel's writes fill
        report = await it.reap(64 << 10, abort_after_s=0.3)
        assert report.end is ReaperEnd.NOT_STARTED
        assert "calc-time-unit" in report.reason
        assert set(it.trackers()) == {0, 1}
