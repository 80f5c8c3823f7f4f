"""What the guest writes on its serial port, one event a line.

The lines' form is described in ``guest/main.c``, which writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vmtune.errors import InvalidInput
from vmtune.model.workload import GUEST_NAMES, Workload
from vmtune.units import PAGE_BYTES


@dataclass(frozen=True, slots=True)
class GuestStart:
    """The region's content is laid out, and all workers begin to write.

    :param workers: how many there are: one on each vCPU.
    :param address: where the region begins in the guest's physical memory.
    :param tsc_khz: ticks of the time stamp counter per millisecond, as the guest measured.
    """

    workload: Workload
    workers: int
    address: int
    tsc_khz: int

    def part(self, worker: int) -> range:
        """The physical addresses of a worker's part of the region.

        :param worker: from 0; as ``set_up`` in ``guest/worker.c`` divides the pages.
        """
        region = self.workload.region_bytes
        pages = -(-region // PAGE_BYTES)
        first, after = (pages * n // self.workers * PAGE_BYTES for n in (worker, worker + 1))
        return range(self.address + first, self.address + min(after, region))


@dataclass(frozen=True, slots=True)
class GuestPass:
    """A worker has written over its part of the region, once or several times.

    :param worker: from 0, in the order of the vCPUs.
    :param number: the last pass's, from 1.
    :param end_us: when that ended, by the guest's own clock since its start.
    :param worked_us: how long all of them took together, from before the first write of each to
        after its last, without the rest between two; by the guest's own clock: time in which
        the guest stood still counts only as far as its time stamp counter went on.
    :param passes: how many passes these are: more than 1 where they are too short to report each.
    :param longest_us: how long the longest took.
    :param wrong: how many words the worker has found so far that were not what it had written,
        in memory or on an IDE disk; None where the workload does not check.
    """

    worker: int
    number: int
    end_us: int
    worked_us: int
    passes: int
    longest_us: int
    wrong: int | None = None

    @property
    def duration_us(self) -> int:
        """How long one pass took, on average of those that this is about."""
        return round(self.worked_us / self.passes)


@dataclass(frozen=True, slots=True)
class GuestFault:
    """The guest refuses its settings and has stopped."""

    parameter: str
    reason: str


GuestEvent = GuestStart | GuestPass | GuestFault

_START = re.compile(r"start((?: [a-z_]+=[0-9]{1,20})+)")
_PASS = re.compile(
    r"pass ([0-9]{1,20}) ([0-9]{1,20}) end_us=([0-9]{1,20}) us=([0-9]{1,20})"
    r"(?: passes=([0-9]{1,20}) longest_us=([0-9]{1,20}))?(?: wrong=([0-9]{1,20}))?"
)
_FAULT = re.compile(r"error ([^:]+): (.+)")
_BESIDES = {"workers", "address", "tsc_khz"}


def parse_line(line: str) -> GuestEvent | None:
    """The event of one line; None for firmware's output and cut-off lines."""
    line = line.strip()
    if match := _PASS.fullmatch(line):
        return _pass(match)
    if match := _START.fullmatch(line):
        return _start(match[1].split())
    if match := _FAULT.fullmatch(line):
        return GuestFault(*match.groups())
    return None


def _pass(match: re.Match[str]) -> GuestPass | None:
    worker, number, end_us, worked_us = map(int, match.groups()[:4])
    passes, longest_us = (int(match[5]), int(match[6])) if match[5] else (1, worked_us)
    if not 1 <= passes <= number or longest_us > worked_us:
        return None
    wrong = int(match[7]) if match[7] else None
    return GuestPass(worker, number, end_us, worked_us, passes, longest_us, wrong)


def _start(pairs: list[str]) -> GuestStart | None:
    values = {name: int(number) for name, number in (pair.split("=") for pair in pairs)}
    if set(values) != set(GUEST_NAMES) | _BESIDES or not values["workers"]:
        return None
    try:
        workload = Workload.from_guest(values)
    except InvalidInput:
        return None  # a line that two writers have mixed up
    return GuestStart(workload, values["workers"], values["address"], values["tsc_khz"])


def parse_serial(lines: Iterable[str]) -> Iterator[GuestEvent]:
    """The events of a serial log.

    A last line without its line end is left out: the guest is still writing it.
    """
    for line in lines:
        if line.endswith("\n") and (event := parse_line(line)) is not None:
            yield event
