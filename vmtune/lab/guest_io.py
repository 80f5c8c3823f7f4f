"""What the guest tells of a load of its disks, line by line.

The lines' form is described in ``guest/io.h``; they come on the debug console of the heartbeat.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from vmtune.model.guest_io import GuestIo, GuestLatency, LatencyBin

_LINE = re.compile(r"io ([a-z_]+)((?: [a-z_0-9]+=[0-9]{1,20})*)")
_KINDS = ("read", "write")
_PARTS, _PART_BITS = 32, 5
"""Of latency.c."""
_NS_IN_MS = 1e6


class GuestIoPhase(StrEnum):
    """How far the guest is."""

    STARTING = "starting"
    RAMP = "ramp"
    COUNTING = "counting"
    ENDED = "ended"
    """No request counts any more; some are still under way, or results are yet to come."""
    DONE = "done"


def bin_ticks(number: int) -> tuple[int, int]:
    """The ticks that a bin begins with, and those that the next one does: latency_bin()'s other
    way round."""
    if number < 2 * _PARTS:
        return number, number + 1
    shift = number // _PARTS - 1
    low = (number % _PARTS + _PARTS) << shift
    return low, low + (1 << shift)


class GuestIoReport:
    """Puts together what the guest tells.

    :ivar phase: how far it is.
    :ivar so_far: requests that counted, as last told.
    """

    def __init__(self) -> None:
        self.phase = GuestIoPhase.STARTING
        self.so_far = 0
        self._told: dict[str, dict[str, int]] = {}

    def add(self, line: str) -> bool:
        """Take in one line, without its line end; False for what is none of these."""
        match = _LINE.fullmatch(line.strip())
        if match is None:
            return False
        what = match[1]
        values = {name: int(text) for name, text in (p.split("=") for p in match[2].split())}
        self._told.setdefault(what, {}).update(values)
        match what:
            case "start":
                self.phase = GuestIoPhase.RAMP
            case "counting":
                self.phase = GuestIoPhase.COUNTING
            case "so_far":
                self.so_far = values.get("requests", self.so_far)
            case "ended":
                self.phase = GuestIoPhase.ENDED
            case "done":
                self.phase = GuestIoPhase.DONE
        return True

    def result(self) -> GuestIo | None:
        """What came of it; None until it is done, or where a part is missing."""
        if self.phase is not GuestIoPhase.DONE:
            return None
        try:
            start, done = self._told["start"], self._told["done"]
            khz = start["tsc_khz"]
            read, write = (self._latency(kind, khz) for kind in _KINDS)
            return GuestIo(
                block_bytes=start["block"],
                disks=start["disks"],
                queues=start["queues"],
                places=start["places"],
                depth=start["requests"],
                disk_bytes=start["bytes"],
                counted_us=self._told["ended"]["us"],
                read=read,
                write=write,
                errors=done["errors"],
                wrong=done["wrong"],
                wakes=done["wakes"],
                interrupts=done["interrupts"],
            )
        except (KeyError, ZeroDivisionError):
            return None

    def _latency(self, kind: str, khz: int) -> GuestLatency:
        told = self._told[kind]
        ns = _NS_IN_MS / khz
        requests = told["requests"]
        bins = _bins(self._told.get(f"{kind}_bins", {}), ns)
        if sum(each.requests for each in bins) != requests:
            raise KeyError(f"{kind}_bins")
        mean = told["sum"] * ns / requests if requests else 0.0
        return GuestLatency(requests, mean, told["least"] * ns, told["most"] * ns, bins)


def _bins(told: Mapping[str, int], ns: float) -> tuple[LatencyBin, ...]:
    found = []
    for name, count in told.items():
        if not name.isdecimal():
            raise KeyError(name)
        low, high = bin_ticks(int(name))
        found.append(LatencyBin(low * ns, high * ns, count))
    return tuple(sorted(found, key=lambda each: each.low_ns))
