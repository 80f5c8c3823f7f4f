"""A run's two QEMUs on this machine, managed by their monitors.

Each QEMU asks the kernel to be killed when the thread that started it ends (PR_SET_PDEATHSIG),
so none outlives a killed benchmark; what slips through is found by the run's folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID, uuid4

from vmtune.bench.migration.command_line import QemuFiles, command_line
from vmtune.bench.migration.guest_listener import GuestListener
from vmtune.bench.migration.order import DirectTestbed
from vmtune.bench.migration.qemu_stderr import RING_FULL, Stderr
from vmtune.bench.migration.send_counters import CONSENTS, SendCounters
from vmtune.bench.migration.stage import Side, finish
from vmtune.bench.model.runs.run import HostSide
from vmtune.bench.model.scenario.migration import Scenario, Transport
from vmtune.bench.model.settable import settable
from vmtune.bench.qemu_process import exit_text, find_qemu, start_qemu
from vmtune.bench.run_folder import clear_left_behind, run_folder
from vmtune.errors import HostUnreachable, MonitorBusy, SetupError
from vmtune.hypervisor.qmp.driver import QmpDriver
from vmtune.hypervisor.qmp.monitor import QmpMonitor
from vmtune.lab.guest_build import build_guest
from vmtune.lab.programs import require_programs

_SOCKET = "qemu.sock"
_LISTENS_WITHIN_S = 30.0
_LOOK_EVERY_S = 0.02


class BenchQemu:
    """One QEMU process of a run."""

    def __init__(self, command: list[str], own: Path) -> None:
        self.errors = Stderr()
        try:
            self.process = start_qemu(command, self.errors.write_end)
        except BaseException:
            self.errors.discard()
            raise
        self.errors.started()
        # It is the run's own QEMU: nobody has to consent to what shows its counters.
        self.monitor = QmpMonitor(
            own, lambda _name, _data: None, lambda: None, more_commands=CONSENTS
        )

    async def listens(self) -> None:
        """Return when its monitors are there: the run's own, which it makes last, answers.

        :raise SetupError: it has ended instead; with its words.
        """
        for _ in range(round(_LISTENS_WITHIN_S / _LOOK_EVERY_S)):
            if self.process.poll() is not None:
                raise self._did_not_start()
            with contextlib.suppress(HostUnreachable, MonitorBusy):
                await self.monitor.connect()
                return
            await asyncio.sleep(_LOOK_EVERY_S)
        raise self._did_not_start()

    def _did_not_start(self) -> SetupError:
        return SetupError(
            f"QEMU did not start: {self.last_words() or 'its monitor does not answer'}",
            field="testbed.qemu",
            code="qemu_did_not_start",
        )

    def last_words(self) -> str:
        """How it ended, and what it complained of."""
        status, said = self.process.poll(), self.errors.said()
        if status is None:
            return said
        return f"{exit_text(status)}: {said}" if said else exit_text(status)

    async def end(self) -> None:
        """Kill it: it holds nothing worth keeping."""
        await self.monitor.close()
        self.process.kill()
        await asyncio.to_thread(self.process.wait)
        await asyncio.to_thread(self.errors.close)


class DirectStage:
    """A :class:`~vmtune.bench.migration.stage.Stage` of two processes on this machine."""

    def __init__(
        self,
        vm: UUID,
        kvm: bool,
        listener: GuestListener,
        sides: dict[HostSide, Side],
        qemus: dict[HostSide, BenchQemu],
    ) -> None:
        self.vm = vm
        self.kvm = kvm
        self.listener = listener
        self.source = sides[HostSide.SOURCE]
        self.destination = sides[HostSide.DESTINATION]
        self._qemus = qemus
        self.sends = SendCounters(qemus[HostSide.SOURCE].monitor)

    def pid(self, side: HostSide) -> int | None:
        """The process of that side's QEMU."""
        process = self._qemus[side].process
        return process.pid if process.poll() is None else None

    def last_words(self, side: HostSide) -> str:
        """How that side's QEMU ended, and what it complained of last."""
        return self._qemus[side].last_words()

    async def trace_full_rings(self, on: bool) -> None:
        """Switch QEMU's trace event on or off."""
        monitor = self._qemus[HostSide.SOURCE].monitor
        await monitor.execute("trace-event-set-state", {"name": RING_FULL, "enable": on})

    async def full_rings(self) -> int:
        """How many exits were traced so far."""
        return await asyncio.to_thread(self._qemus[HostSide.SOURCE].errors.ring_full_exits)


@functools.cache
def guest_program() -> bytes:
    """The guest's program: some kilobytes, built once for all runs of this process."""
    with tempfile.TemporaryDirectory(prefix="vmtune-guest-") as folder:
        return build_guest(Path(folder)).read_bytes()


@asynccontextmanager
async def direct_stage(
    testbed: DirectTestbed, scenario: Scenario, kvm: bool
) -> AsyncIterator[DirectStage]:
    """Two fresh QEMUs, and nothing left of them afterwards.

    :raise SetupError: there is no such QEMU, it does not start, or the folder cannot be made.
    :raise LabError: the guest cannot be built.
    """
    program = find_qemu(testbed.qemu)
    require_programs("setpriv")
    await asyncio.to_thread(clear_left_behind, testbed.folder)
    with run_folder(testbed.folder) as folder:
        kernel = folder / "guest.elf"
        await asyncio.to_thread(lambda: kernel.write_bytes(guest_program()))
        listener = GuestListener(folder, scenario.workload.beat_ms)
        qemus: dict[HostSide, BenchQemu] = {}
        drivers: list[QmpDriver] = []
        # A path's name in the folder, by which a QEMU on this machine is reached.
        address = "127.0.0.1" if scenario.transport is Transport.TCP else ""
        try:
            vm = uuid4()
            sides: dict[HostSide, Side] = {}
            for side in HostSide:
                at = folder / side.value
                at.mkdir()
                own = folder / f"{side.value}.own"
                files = QemuFiles(program, testbed.data_folder, kernel, folder, at / _SOCKET, own)
                incoming = side is HostSide.DESTINATION
                command = command_line(files, scenario, vm, kvm=kvm, incoming=incoming)
                qemus[side] = BenchQemu(command, own)
                driver = QmpDriver(
                    f"qmp+unix://{at}",
                    address,
                    more_commands=testbed.consents,
                    tunables=settable(),
                )
                drivers.append(driver)
                sides[side] = Side(side.value, drivers[-1])
            for qemu in qemus.values():
                await qemu.listens()
            yield DirectStage(vm, kvm, listener, sides, qemus)
        finally:
            await finish(_take_down(drivers, list(qemus.values()), listener))


async def _take_down(
    drivers: list[QmpDriver], qemus: list[BenchQemu], listener: GuestListener
) -> None:
    closing = [*(driver.close() for driver in drivers), *(qemu.end() for qemu in qemus)]
    try:
        await asyncio.gather(*closing, return_exceptions=True)
    finally:
        await asyncio.to_thread(listener.close)
