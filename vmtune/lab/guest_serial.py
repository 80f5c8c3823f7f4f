"""What the guest writes on its serial port, one event a line.

The lines' form is described in ``guest/main.c``, which writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GuestStart:
    """The guest has read its settings and is about to write."""

    region_bytes: int
    stride_bytes: int
    idle_ms: int
    tsc_khz: int
    """Ticks of the time stamp counter per millisecond, as the guest measured."""


@dataclass(frozen=True, slots=True)
class GuestPass:
    """The guest has written once over its region.

    ``duration_us`` is from before the first write to after the last, by the
    guest's own clock: time in which the guest stood still counts only as far
    as its time stamp counter went on.
    """

    number: int
    duration_us: int


@dataclass(frozen=True, slots=True)
class GuestFault:
    """The guest refuses its settings and has stopped."""

    parameter: str
    reason: str


GuestEvent = GuestStart | GuestPass | GuestFault

_START = re.compile(r"start region=(\d+) stride=(\d+) idle_ms=(\d+) tsc_khz=(\d+)")
_PASS = re.compile(r"pass (\d+) us=(\d+)")
_FAULT = re.compile(r"error ([^:]+): (.+)")


def parse_line(line: str) -> GuestEvent | None:
    """The event of one line; None for firmware's output and cut-off lines."""
    line = line.strip()
    if match := _PASS.fullmatch(line):
        return GuestPass(*map(int, match.groups()))
    if match := _START.fullmatch(line):
        return GuestStart(*map(int, match.groups()))
    if match := _FAULT.fullmatch(line):
        return GuestFault(*match.groups())
    return None


def parse_serial(lines: Iterable[str]) -> Iterator[GuestEvent]:
    """The events of a serial log.

    A last line without its line end is left out: the guest is still writing it.
    """
    for line in lines:
        if line.endswith("\n") and (event := parse_line(line)) is not None:
            yield event
