"""One run of the boot benchmark, from QEMU's process to the guest's user space."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable

from vmtune.bench.boot.firmware import FirmwareFiles, find_firmware
from vmtune.bench.boot.log import REGIONS, BootLog
from vmtune.bench.boot.order import BootOrder, BootPhase, BootResult
from vmtune.bench.boot.payload import BootGuestFiles, prepare_guest
from vmtune.bench.boot.qemu import BootFiles, BootQemu, command_line, lay_out
from vmtune.bench.machine.environment import read_qemu
from vmtune.bench.machine.srcutree import srcutree
from vmtune.bench.migration.order import RunProgress
from vmtune.bench.migration.stage import finish
from vmtune.bench.model.runs.boot_record import BootEnd, BootMarkName, BootRecord
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.boot import BootScenario
from vmtune.bench.qemu_process import find_qemu
from vmtune.bench.run_folder import clear_left_behind, run_folder
from vmtune.errors import SetupError
from vmtune.lab.domain_xml import kvm_usable
from vmtune.lab.programs import require_programs

_REPORT_EVERY_S = 0.25
_DIES_WITHIN_S = 0.5
_PHASES = {
    BootMarkName.GUEST: BootPhase.FIRMWARE,
    BootMarkName.LOADING: BootPhase.LOADING,
    BootMarkName.KERNEL: BootPhase.KERNEL,
}
"""What a boot is doing after a mark."""
_STATES = {
    BootEnd.USER_SPACE: RunState.COMPLETED,
    BootEnd.GIVEN_UP: RunState.NOT_CONVERGED,
    BootEnd.DIED: RunState.FAILED,
}


async def run_boot(order: BootOrder, on_progress: Callable[[RunProgress], None]) -> BootResult:
    """Start a fresh QEMU, watch it boot, and take it down.

    A boot that exceeds its limit, or whose QEMU dies, is a result, with all that was recorded.
    Cancelling the task ends the run: everything is taken down, and the cancellation is re-raised.

    :param on_progress: called at each phase and several times a second, from the event loop.
    :raise VmtuneError: the boot cannot be done here (no QEMU, no firmware, no KVM where it is
        needed, no kernel to be had); nothing was left behind.
    """
    scenario, testbed = order.effective, order.testbed
    program = find_qemu(testbed.qemu)
    if scenario.needs_kvm and not kvm_usable():
        raise SetupError(
            f"{scenario.name} needs KVM, and this machine has no usable /dev/kvm",
            field="scenario.cell.accelerator",
            code="no_kvm",
            remedy="boot with tcg, or run it where /dev/kvm is usable",
        )
    require_programs("setpriv")
    reporter = Reporter(on_progress)
    reporter.report(BootPhase.PREPARING, 0)
    firmware = await asyncio.to_thread(find_firmware, scenario.cell.firmware, testbed.data_folder)
    guest = await prepare_guest(scenario, order.cache)
    version = (await asyncio.to_thread(read_qemu, program)).get("version", "")
    await asyncio.to_thread(clear_left_behind, testbed.folder)
    with run_folder(testbed.folder) as folder:
        # To its end also when cancelled: nothing may be made in a folder that is just going.
        files = await finish(
            asyncio.to_thread(lay_out, program, testbed.data_folder, folder, guest, firmware)
        )
        boot = _Boot(scenario, files, guest, firmware, reporter)
        return await boot.run(version)


class _Boot:
    """One boot, once all is there that it needs."""

    def __init__(
        self,
        scenario: BootScenario,
        files: BootFiles,
        guest: BootGuestFiles,
        firmware: FirmwareFiles,
        reporter: Reporter,
    ) -> None:
        self._scenario, self._files = scenario, files
        self._guest, self._firmware = guest, firmware
        self._reporter = reporter
        self._limit_ms = scenario.max_seconds * 1000
        # TCG has no memory regions of KVM's: none is not the same as not counted.
        counted = scenario.count_regions and scenario.needs_kvm
        self._log = BootLog(scenario.cell.guest, counted)

    async def run(self, version: str) -> BootResult:
        """Start it, watch it, end it."""
        changed = asyncio.Event()
        loop = asyncio.get_running_loop()

        def news() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(changed.set)

        command = command_line(self._files, self._scenario, self._guest, self._firmware)
        qemu = BootQemu(command, self._files.serial, self._log, news)
        try:
            end = await self._watch(qemu, changed)
            ended_ms, cpu_ms, how = qemu.at_ms(), qemu.cpu_ms(), ""
            if end is BootEnd.DIED:  # after a panic or a switching off that takes a moment
                how = await asyncio.to_thread(qemu.how_it_ended, _DIES_WITHIN_S)
            self._reporter.report(BootPhase.CLEANING_UP, ended_ms)
        finally:
            await finish(qemu.end())
        # All output has been read only now: it may have booted, and died of being switched off.
        user_space = self._log.marks.get(BootMarkName.USER_SPACE)
        if user_space is not None and user_space.at_ms <= self._limit_ms:
            end, ended_ms = BootEnd.USER_SPACE, user_space.at_ms
        record = self._record(end, ended_ms, cpu_ms, version)
        failure = self._failure(how) if end is BootEnd.DIED else ""
        return BootResult(_STATES[end], record, failure, self._scenario.needs_kvm)

    async def _watch(self, qemu: BootQemu, changed: asyncio.Event) -> BootEnd:
        limit_ms = self._limit_ms
        while True:
            changed.clear()
            alive = qemu.process.poll() is None
            with qemu.lock:
                log = self._log
                booted, ended = log.booted, bool(log.stopped or log.fault) or not alive
                phase = next(
                    (_PHASES[name] for name in reversed(log.marks) if name in _PHASES),
                    BootPhase.STARTING,
                )
            if booted:
                return BootEnd.USER_SPACE
            if ended:
                return BootEnd.DIED
            at_ms = qemu.at_ms()
            if at_ms >= limit_ms:
                return BootEnd.GIVEN_UP
            self._reporter.report(phase, at_ms)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(_REPORT_EVERY_S, (limit_ms - at_ms) / 1000)):
                    await changed.wait()

    def _failure(self, how: str) -> str:
        log = self._log
        stopped = f"QEMU stopped the guest: {log.stopped}" if log.stopped else ""
        last = log.last_words()
        return "; ".join(
            filter(None, (how or stopped, log.said(), log.fault or (last and f"the guest: {last}")))
        )

    def _record(
        self, end: BootEnd, ended_ms: float, cpu_ms: float | None, version: str
    ) -> BootRecord:
        log = self._log
        marks = sorted(log.marks.values(), key=lambda mark: mark.at_ms)
        if end is BootEnd.DIED:
            ended_ms = max(ended_ms, *(mark.at_ms for mark in marks), 0)
        marks = [mark for mark in marks if mark.at_ms <= ended_ms]
        regions = marks[-1].region_updates if end is BootEnd.USER_SPACE else log.regions
        return BootRecord(
            end=end,
            ended_ms=ended_ms,
            marks=tuple(marks),
            region_updates=None if regions is None else {REGIONS: regions},
            cpu_ms=cpu_ms,
            qemu=version,
            kernel=self._guest.version,
            firmware=self._firmware.words,
            host_kernel=os.uname().release,
            srcutree=srcutree(),
            serial_tail=log.serial_tail,
        )


class Reporter:
    """Reports the progress of a boot. The share never goes back."""

    def __init__(self, to: Callable[[RunProgress], None]) -> None:
        self._to = to
        self._share = 0.0

    def report(self, phase: BootPhase, at_ms: float) -> None:
        """It is in *phase*."""
        phases = list(BootPhase)
        self._share = max(self._share, phases.index(phase) / (len(phases) - 1))
        self._to(RunProgress(phase, self._share, round(at_ms)))
