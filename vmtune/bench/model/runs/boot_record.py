"""What one boot recorded, raw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from annotated_types import Interval, MaxLen

MAX_TAIL = 8192
_Words = Annotated[str, MaxLen(2000)]
_Milliseconds = Annotated[float, Interval(ge=0, le=1e10)]
_Updates = Annotated[int, Interval(ge=0, le=1 << 53)]


class BootMarkName(StrEnum):
    """A part of a boot that was reached, in order."""

    GUEST = "guest"
    """QEMU has set the VM up and lets its vCPUs go: the guest's first instruction is next."""
    FIRMWARE = "firmware"
    """The firmware first asks QEMU for a part of its configuration."""
    LOADING = "loading"
    """The firmware has found its devices, and first asks QEMU about the kernel to load."""
    KERNEL = "kernel"
    """The first words of the guest's kernel on the serial port: of Linux the line with its
    version, once it has unpacked itself."""
    USER_SPACE = "user space"
    """The first program of the guest's user space says so on the serial port. The project's
    guest has none: there it is its beginning to work."""


class BootEnd(StrEnum):
    """How a boot ended."""

    USER_SPACE = "user space"
    """It reached user space; QEMU was ended then."""
    GIVEN_UP = "given up"
    """It had not by the scenario's limit."""
    DIED = "died"
    """QEMU or the guest ended by itself before, or QEMU stopped the guest for good."""


@dataclass(frozen=True, slots=True)
class BootMark:
    """A part of the boot was reached.

    :param at_ms: since the start of QEMU's process, by the host's clock.
    :param region_updates: how often KVM's memory regions had been updated by then; None where
        that was not counted.
    """

    name: BootMarkName
    at_ms: _Milliseconds
    region_updates: _Updates | None = None


@dataclass(frozen=True, slots=True)
class BootRecord:
    """Everything that was recorded of a boot.

    :param ended_ms: when it reached user space, was ended at its limit, or was found dead.
    :param region_updates: by the name of QEMU's trace event, how often it came in all; None
        where that was not counted.
    :param cpu_ms: user and system time of QEMU's process; None where it could not be read.
    :param qemu: its version, in its own words.
    :param kernel: the guest's, in its own words.
    :param firmware: its name, and its version or hash.
    :param host_kernel: the release of the host's.
    :param srcutree: the parameters of the host kernel's SRCU, where it has such.
    :param serial_tail: the end of what came over the serial port.
    """

    end: BootEnd
    ended_ms: _Milliseconds
    marks: Annotated[tuple[BootMark, ...], MaxLen(len(BootMarkName))] = ()
    region_updates: Annotated[Mapping[str, _Updates], MaxLen(1000)] | None = None
    cpu_ms: _Milliseconds | None = None
    qemu: _Words = ""
    kernel: _Words = ""
    firmware: _Words = ""
    host_kernel: _Words = ""
    srcutree: Annotated[Mapping[str, _Words], MaxLen(1000)] = field(default_factory=dict)
    serial_tail: Annotated[str, MaxLen(MAX_TAIL)] = ""

    def mark(self, name: BootMarkName) -> BootMark | None:
        """That mark; None where it was not reached."""
        return next((each for each in self.marks if each.name is name), None)
