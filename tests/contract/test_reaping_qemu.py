"""The reaper against real QEMUs with real dirty rings, which takes KVM."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from tests.support import qemu
from vmtune.control.controllers import Controllers
from vmtune.control.reaping import ReaperSettings
from vmtune.domain.controlled import ReaperEnd, ReaperReport
from vmtune.domain.migration import QemuStatus, Snapshot
from vmtune.domain.workload import Workload
from vmtune.drivers.base import MigrateOrder
from vmtune.drivers.qmp import QmpDriver
from vmtune.drivers.watching import watch
from vmtune.errors import CommandRefused
from vmtune.lab.domain_xml import kvm_usable
from vmtune.lab.guest_build import build_guest

NO_KVM = "" if kvm_usable() else "a dirty ring takes KVM, and there is no usable /dev/kvm"
pytestmark = pytest.mark.skipif(bool(NO_KVM), reason=NO_KVM or "never")

VM = UUID("5f5b1f5e-6c0e-4c8f-9d1a-0d9f6a1c7e10")
ENTRIES = 65536
WORKLOAD = Workload(region_bytes=64 << 20)


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

    def trackers(self) -> list[int]:
        """Who had QEMU track dirty pages, change by change: 1 the migration, 2 a measurement
        (GLOBAL_DIRTY_* of QEMU's include/exec/memory.h)."""
        word = "global_dirty_changed bitmask "
        lines = [line for line in self.qemu.said().splitlines() if line.startswith(word)]
        return [int(line.removeprefix(word), 16) for line in lines]

    async def until_writing(self) -> None:
        """Until the guest writes: firmware comes first, and takes seconds on some machines."""
        async with asyncio.timeout(90):
            while "pass" not in self.serial.read_text():  # noqa: ASYNC110 - a file
                await asyncio.sleep(0.05)

    async def measured(self) -> tuple[int, ...]:
        """What a measurement has found, once it has ended."""
        async with asyncio.timeout(10):
            while True:
                found = await self.source.dirty_rates(VM)
                if found.measured:
                    assert found.measured_ms >= 50
                    return found.vcpu_mib_per_s
                await asyncio.sleep(0.01)

    async def reap(self, seconds: float, bandwidth_bytes_per_s: int) -> ReaperReport:
        """A migration that does not converge, reaped for a while and then aborted."""
        controllers = Controllers(self.source, VM, reaper=ReaperSettings())

        async def on_snapshot(snapshot: Snapshot) -> None:
            if snapshot.sample is not None:
                await controllers.on_sample(snapshot.sample)

        async def abort() -> None:
            await asyncio.sleep(seconds)
            await self.source.abort_migration(VM)

        async with controllers:
            controllers.migration_starts()
            order = MigrateOrder(VM, {"max_bandwidth_bytes_per_s": bandwidth_bytes_per_s}, {})
            handle = await self.source.start_migration(order, self.destination)
            aborting = asyncio.create_task(abort())
            await watch(self.source, VM, 10, on_snapshot, handle)
            await aborting
            with pytest.raises(CommandRefused, match="cancelled"):
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
    with (
        qemu.running(build, here, uuid=VM, machine=vm, extra=source) as running,
        qemu.running(build, there, uuid=VM, machine=vm, extra=destination),
    ):
        drivers = [QmpDriver(f"qmp+unix://{place}") for place in (here, there)]
        try:
            yield Pair(*drivers, running, serial)
        finally:
            for driver in drivers:
                await driver.close()


async def test_rings_are_reaped_and_no_tracking_stays_on(guest: Path, tmp_path: Path) -> None:
    build = qemu.installed()
    if build.why_not:
        pytest.skip(build.why_not)
    async with pair(build, guest, tmp_path) as it:
        await it.until_writing()
        await it.source.measure_dirty_rates(VM, 1000)
        async with asyncio.timeout(10):
            while not (await it.source.dirty_rates(VM)).measuring:  # noqa: ASYNC110 - asks QEMU
                await asyncio.sleep(0.01)
        with pytest.raises(CommandRefused) as refused:
            await it.source.measure_dirty_rates(VM, 50)
        assert refused.value.problems[0].code == "already_measuring"
        (rate,) = await it.measured()
        assert rate > 10
        assert it.trackers() == [2, 0]

        report = await it.reap(2.5, 8 << 20)
        assert (report.end, report.reason) == (ReaperEnd.MIGRATION_ENDED, "")
        assert report.throughout
        assert report.ring_entries == ENTRIES
        assert report.round_count >= 5
        assert report.filled_rounds == 0, report
        during = [each for each in report.rounds if each.at_ms > 0]
        assert max(each.fullest for each in during) > 0.02
        # The migration's own tracking stayed on through all rounds, and nothing after them.
        changes = it.trackers()
        begun = next(n for n, tracking in enumerate(changes) if tracking & 1)
        assert {tracking & 1 for tracking in changes[begun:-1]} == {1}
        assert changes[-1] == 0
        assert not (await it.source.dirty_rates(VM)).measuring
        assert (await it.source.migration(VM)).status is QemuStatus.CANCELLED


async def test_an_old_qemu_refuses_and_the_migration_goes_on(guest: Path, tmp_path: Path) -> None:
    build = qemu.old()
    if build.why_not:
        pytest.skip(build.why_not)
    async with pair(build, guest, tmp_path) as it:
        report = await it.reap(0.3, 64 << 10)
        assert report.end is ReaperEnd.NOT_STARTED
        assert "calc-time-unit" in report.reason
        assert set(it.trackers()) == {0, 1}
