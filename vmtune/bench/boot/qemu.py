"""The QEMU of a boot: its command line, its process, and a thread that reads its output.

The process asks the kernel to be killed when the thread that started it ends
(PR_SET_PDEATHSIG). What slips through is found by the run's folder, which its command line names.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vmtune.bench.boot.firmware import FirmwareFiles
from vmtune.bench.boot.log import CONFIGURATION, REGIONS, RUN_STATE, BootLog
from vmtune.bench.boot.payload import BootGuestFiles
from vmtune.bench.machine.cpu_times import process_clock
from vmtune.bench.model.scenario.boot import BootScenario
from vmtune.bench.model.scenario.matrix_cells import (
    DEVICES_ON_BRIDGE,
    DEVICES_ON_ROOT,
    BootCell,
)
from vmtune.bench.qemu_process import exit_text, start_qemu

_SERIAL = "serial"
_READ_BYTES = 1 << 16
_MIB = 1 << 20
DEVICE_MEMORY = "1M"
"""Of each device of a boot."""


@dataclass(frozen=True, slots=True)
class BootFiles:
    """What a boot's QEMU is given.

    :param folder: of the run.
    :param kernel: the guest's; likewise *initramfs*, None where it has none.
    :param variables: the firmware's own, which it writes to.
    """

    program: Path
    data_folder: Path | None
    folder: Path
    kernel: Path
    initramfs: Path | None
    variables: Path | None

    @property
    def serial(self) -> Path:
        """The pipe that QEMU writes what comes over the serial port to."""
        return self.folder / _SERIAL


def lay_out(
    program: Path,
    data_folder: Path | None,
    folder: Path,
    guest: BootGuestFiles,
    firmware: FirmwareFiles,
) -> BootFiles:
    """Make the files that a boot needs in its folder. Blocks."""
    if isinstance(guest.kernel, bytes):
        kernel = folder / "kernel"
        kernel.write_bytes(guest.kernel)
    else:
        kernel = guest.kernel
    first = variables = None
    if guest.initramfs:
        first = folder / "initramfs"
        first.write_bytes(guest.initramfs)
    if firmware.variables is not None:
        variables = folder / "variables"
        shutil.copyfile(firmware.variables, variables)
    files = BootFiles(program, data_folder, folder, kernel, first, variables)
    os.mkfifo(files.serial, 0o600)
    return files


def command_line(
    files: BootFiles, scenario: BootScenario, guest: BootGuestFiles, firmware: FirmwareFiles
) -> list[str]:
    """How QEMU is started."""
    cell = scenario.cell
    accelerator: str = cell.accelerator.value
    if scenario.dirty_ring_entries:
        accelerator += f",dirty-ring-size={scenario.dirty_ring_entries}"
    events = [RUN_STATE, CONFIGURATION, *([REGIONS] if scenario.count_regions else [])]
    return [
        str(files.program),
        *(("-L", str(files.data_folder)) if files.data_folder else ()),
        *("-name", "guest=boot,debug-threads=on"),
        *("-machine", "pc" if cell.acpi else "pc,acpi=off", "-accel", accelerator),
        # Not the host's own model: some nested KVMs cannot set all its MSRs.
        *("-cpu", "qemu64"),
        *("-m", f"{cell.memory_bytes // _MIB}M", "-smp", str(cell.vcpus)),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *_devices(cell),
        *_firmware(files, firmware),
        *("-kernel", str(files.kernel), "-append", guest.command_line),
        *(("-initrd", str(files.initramfs)) if files.initramfs else ()),
        *("-chardev", f"file,id=serial,path={_word(files.serial)}"),
        *("-serial", "chardev:serial"),
        *(word for event in events for word in ("-trace", event)),
    ]


def _devices(cell: BootCell) -> list[str]:
    """Bridges on the root bus, and devices, as many on each bus as can be."""
    words: list[str] = []
    for number in range(1, cell.bridges + 1):
        words += ["-device", f"pci-bridge,id=bridge{number},bus=pci.0,chassis_nr={number}"]
    buses = ["pci.0"] * DEVICES_ON_ROOT
    for number in range(1, cell.bridges + 1):
        # Without ACPI slot 0 is the hot-plug controller's.
        buses += [f"bridge{number},addr={slot:#x}" for slot in range(1, DEVICES_ON_BRIDGE + 1)]
    # The farthest first: a device behind a bridge is moved with its bridge's window, too.
    chosen = buses[::-1][: cell.devices] if cell.bridges else buses[: cell.devices]
    for number, bus in enumerate(chosen):
        memory = f"memory-backend-ram,id=shared{number},size={DEVICE_MEMORY},share=on"
        words += ["-object", memory]
        words += ["-device", f"ivshmem-plain,memdev=shared{number},bus={bus}"]
    return words


def _firmware(files: BootFiles, firmware: FirmwareFiles) -> list[str]:
    if firmware.code is None:
        return []
    if files.variables is None:
        return ["-bios", str(firmware.code)]
    flash = "if=pflash,format=raw"
    return [
        *("-drive", f"{flash},unit=0,readonly=on,file={_word(firmware.code)}"),
        *("-drive", f"{flash},unit=1,file={_word(files.variables)}"),
    ]


def _word(path: Path) -> str:
    """A path among QEMU's key=value words, which commas end."""
    return str(path).replace(",", ",,")


class BootQemu:
    """One QEMU process, from its start to :meth:`end`.

    :param serial: the pipe of its serial port, which is there.
    :param log: receives the output, under :attr:`lock`.
    :param news: called from the listening thread after each piece.
    """

    def __init__(
        self, command: list[str], serial: Path, log: BootLog, news: Callable[[], None]
    ) -> None:
        self.lock = threading.Lock()
        self._log, self._news = log, news
        self._end = os.eventfd(0, os.EFD_CLOEXEC)
        # There is no writer yet: the pipe is ready to read only once there was one.
        self._serial = os.open(serial, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._errors, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(write_end, True)
        self.origin = time.monotonic()
        try:
            self.process = start_qemu(command, write_end)
        except BaseException:
            self._close()
            raise
        finally:
            os.close(write_end)
        self._thread = threading.Thread(target=self._run, name="boot listener", daemon=True)
        self._thread.start()

    def at_ms(self) -> float:
        """Now, on the boot's timeline."""
        return (time.monotonic() - self.origin) * 1000

    def cpu_ms(self) -> float | None:
        """User and system time so far; None once it has ended."""
        with contextlib.suppress(OSError):
            return time.clock_gettime_ns(process_clock(self.process.pid)) / 1e6
        return None

    def how_it_ended(self, within_s: float) -> str:
        """In words; empty where it runs longer than *within_s*. Blocks."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(within_s)
        status = self.process.poll()
        return "" if status is None else exit_text(status)

    async def end(self) -> None:
        """Kill it: it holds nothing worth keeping. Its output is read to the end."""
        self.process.kill()
        await asyncio.to_thread(self.process.wait)
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        os.eventfd_write(self._end, 1)
        self._thread.join()
        self._close()

    def _close(self) -> None:
        for each in (self._end, self._serial, self._errors):
            os.close(each)

    def _run(self) -> None:
        """Read both streams until :meth:`end`. QEMU's own words first: what it traced belongs
        before what the guest says to it."""
        streams = {self._errors: self._log.add_errors, self._serial: self._log.add_serial}
        with selectors.DefaultSelector() as selector:
            selector.register(self._end, selectors.EVENT_READ)
            for stream in streams:
                selector.register(stream, selectors.EVENT_READ)
            ending = False
            while not ending:
                ready = {key.fd for key, _ in selector.select()}
                ending = self._end in ready
                for stream, add in streams.items():
                    if stream in ready or ending:
                        if not self._read(stream, add, ending) and stream in ready:
                            selector.unregister(stream)
                            ready.discard(stream)
                self._news()

    def _read(self, stream: int, add: Callable[[bytes, float], None], to_its_end: bool) -> bool:
        """Give the log a piece, or all that is there; False where the stream has ended."""
        while True:
            try:
                data = os.read(stream, _READ_BYTES)
            except BlockingIOError:
                return True
            with self.lock:
                add(data, self.at_ms())
            if not data:
                return False
            if not to_its_end:
                return True
