"""What a QEMU that boots a guest says, put together piece by piece: its trace on its standard
error, and the guest's serial port.

The trace events, the same in QEMU 7.2 and 10.0:

- ``runstate_set`` (``runstate_set()`` of QEMU's runstate.c): the new state ``running`` is set by
  ``vm_prepare_start()``, right before the vCPUs are let go. The first exit of KVM_RUN
  (``kvm_run_exit``) came 0.2 ms later and the first translated block of TCG (``exec_tb``) 2 to
  5 ms later; those two events themselves would come thousands of times in a boot.
- ``fw_cfg_select`` (``fw_cfg_select()`` of hw/nvram/fw_cfg.c): about 40 times in a boot with
  SeaBIOS, 80 with OVMF. The keys' numbers are those of QEMU's docs/specs/fw_cfg.
- ``kvm_set_user_memory`` (``kvm_set_user_memory_region()`` of accel/kvm/kvm-all.c): each ioctl
  KVM_SET_USER_MEMORY_REGION.
"""

from __future__ import annotations

import re
from enum import StrEnum

from vmtune.bench.model.runs.boot_record import MAX_TAIL, BootMark, BootMarkName
from vmtune.bench.model.scenario.matrix_cells import BootGuest
from vmtune.lab.guest_serial import GuestFault, GuestStart, parse_line

RUN_STATE, CONFIGURATION, REGIONS = "runstate_set", "fw_cfg_select", "kvm_set_user_memory"
"""QEMU's trace events."""
USER_SPACE = "vmtune boot: user space"
"""What the initramfs writes: see ``guest/init.c``."""
GUEST_RUNS = "guest"
"""What the project's guest writes first."""

_TRACE = re.compile(r"(?:[0-9]+@[0-9.]+:)?([a-z0-9_]+) ")
_STATE = re.compile(r"new_state [0-9]+ \(([a-z-]+)\)")
_KEY = re.compile(r"key 0x([0-9a-f]+)")
# FW_CFG_KERNEL_ADDR, _KERNEL_SIZE, _KERNEL_CMDLINE, _INITRD_ADDR and _SIZE, and from
# _KERNEL_ENTRY to _SETUP_DATA.
_KERNEL_KEYS = frozenset({0x07, 0x08, 0x09, 0x0A, 0x0B, *range(0x10, 0x19)})
_LINUX = re.compile(r"Linux version [0-9]")
_PANIC = re.compile(r"Kernel panic - not syncing.*")
# A dump of registers says nothing to most, and is long.
_DUMP = re.compile(r"extra data|Code=|[A-Z0-9]{2,4} ?=")
_WARNING = ": warning: "
_KEPT = MAX_TAIL
_SHOWN = 600


class Stopped(StrEnum):
    """States of QEMU in which the guest does not continue by itself."""

    INTERNAL_ERROR = "internal-error"
    PANICKED = "guest-panicked"
    IO_ERROR = "io-error"
    WATCHDOG = "watchdog"
    SHUT_DOWN = "shutdown"


_STOPPED = {each.value: each for each in Stopped}


class Lines:
    """Puts lines together from pieces, and keeps the stream's end.

    A line without an end is taken for one when it is longer than the buffer.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._tail = b""

    def add(self, data: bytes) -> list[str]:
        """The lines that *data* ends."""
        self._tail = (self._tail + data)[-_KEPT:]
        *whole, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _KEPT:
            whole, self._rest = [*whole, self._rest], b""
        return [line.decode(errors="replace") for line in whole]

    def end(self) -> list[str]:
        """The stream has ended: what of a line is there."""
        rest, self._rest = self._rest, b""
        return [rest.decode(errors="replace")] if rest else []

    @property
    def tail(self) -> str:
        """The end of all that came."""
        return self._tail.decode(errors="replace")[-_KEPT:]


def _clean(text: str) -> str:
    """*text* as it can be stored and shown."""
    return "".join(c for c in text if c.isprintable() or c in "\n\t")


class BootLog:
    """The marks of a boot, and what else its streams contain. Times are milliseconds since the
    start of QEMU's process.

    :param count_regions: the trace event :data:`REGIONS` is on.
    """

    def __init__(self, guest: BootGuest, count_regions: bool) -> None:
        self.marks: dict[BootMarkName, BootMark] = {}
        self.regions: int | None = 0 if count_regions else None
        self.stopped: Stopped | None = None
        self.fault = ""
        self._guest = guest
        self._errors, self._serial = Lines(), Lines()
        self._said: list[str] = []

    def add_errors(self, data: bytes, at_ms: float) -> None:
        """A piece of QEMU's standard error; an empty one is its end."""
        for line in self._errors.add(data) if data else self._errors.end():
            self._error(line, at_ms)

    def add_serial(self, data: bytes, at_ms: float) -> None:
        """A piece of what came over the serial port."""
        for line in self._serial.add(data):
            if self._guest is BootGuest.LINUX:
                self._linux(line, at_ms)
            else:
                self._project(line.strip(), at_ms)

    @property
    def booted(self) -> bool:
        """It has reached user space."""
        return BootMarkName.USER_SPACE in self.marks

    @property
    def serial_tail(self) -> str:
        """The end of what came over the serial port, without the control characters with which
        firmware positions a cursor."""
        return _clean(self._serial.tail)

    def said(self) -> str:
        """What QEMU complained of, without warnings, which come with every start, and without
        dumps of registers."""
        return "; ".join(self._said)[-_SHOWN:]

    def last_words(self) -> str:
        """The last line of the guest."""
        lines = [line.strip() for line in self.serial_tail.splitlines() if line.strip()]
        return lines[-1][:_SHOWN] if lines else ""

    def _error(self, line: str, at_ms: float) -> None:
        trace = _TRACE.match(line)
        event = trace[1] if trace else ""
        if event == REGIONS:
            self.regions = (self.regions or 0) + 1
        elif event == RUN_STATE:
            self._state(line, at_ms)
        elif event == CONFIGURATION:
            self._configuration(line, at_ms)
        elif line.strip() and _WARNING not in line and not _DUMP.match(line):
            self._said = [*self._said[-20:], _clean(line).strip()[:_SHOWN]]

    def _state(self, line: str, at_ms: float) -> None:
        state = _STATE.search(line)
        if state is None:
            return
        if state[1] == "running":
            self._mark(BootMarkName.GUEST, at_ms)
        self.stopped = self.stopped or _STOPPED.get(state[1])

    def _configuration(self, line: str, at_ms: float) -> None:
        """QEMU itself looks up a key or two before the guest runs."""
        key = _KEY.search(line)
        if key is None or BootMarkName.GUEST not in self.marks:
            return
        self._mark(BootMarkName.FIRMWARE, at_ms)
        if int(key[1], 16) in _KERNEL_KEYS:
            self._mark(BootMarkName.LOADING, at_ms)

    def _linux(self, line: str, at_ms: float) -> None:
        # In front of either there may be what the firmware wrote without ending its line.
        if _LINUX.search(line):
            self._mark(BootMarkName.KERNEL, at_ms)
        elif USER_SPACE in line and BootMarkName.KERNEL in self.marks:
            self._mark(BootMarkName.USER_SPACE, at_ms)
        elif panic := _PANIC.search(line):
            self.fault = self.fault or _clean(panic[0]).strip()[:_SHOWN]

    def _project(self, line: str, at_ms: float) -> None:
        event = parse_line(line)
        if line == GUEST_RUNS:
            self._mark(BootMarkName.KERNEL, at_ms)
        elif isinstance(event, GuestStart) and BootMarkName.KERNEL in self.marks:
            self._mark(BootMarkName.USER_SPACE, at_ms)
        elif isinstance(event, GuestFault):
            self.fault = self.fault or _clean(f"{event.parameter}: {event.reason}")[:_SHOWN]

    def _mark(self, name: BootMarkName, at_ms: float) -> None:
        """The first time counts: a guest that starts anew has not booted before."""
        self.marks.setdefault(name, BootMark(name, at_ms, self.regions))
