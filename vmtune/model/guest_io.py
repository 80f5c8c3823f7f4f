"""What the project's guest does to its virtio-blk disks, and what it measured.

The guest's side is ``vmtune/lab/guest/io.h``; :mod:`vmtune.lab.guest_io` reads what it tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval, MaxLen

from vmtune.errors import InvalidInput, Problem
from vmtune.units import Unit

MAX_GUEST_DEPTH = 1024
"""Requests of all jobs of one queue: the most places that a virtqueue of QEMU's disks has."""
MAX_GUEST_JOBS = 256
SECTOR_BYTES = 512
MAX_GUEST_BLOCK_BYTES = 32 << 20
MAX_IO_MS = 3_600_000
MOST_BINS = 4096
_Count = Annotated[int, Interval(ge=0, le=(1 << 63) - 1)]
_Nanoseconds = Annotated[float, Interval(ge=0, le=1e18)]


@dataclass(frozen=True, slots=True)
class GuestLoad:
    """A load of the guest's disks: job after job is given the next disk, and of that the next of
    its queues. Queues are dealt out to the vCPUs in turn.

    :param depth: requests of each job under way at once.
    :param write_percent: share of requests that write.
    :param sequential: a queue's blocks one after another, else drawn at random.
    :param ramp_ms: load before requests count; *run_ms* the load that does.
    :param interrupts: a vCPU without an answer halts until its disk interrupts; else it looks for
        answers, and uses up its CPU. It halts in the processor's ring 0, which a KVM that emulates
        a guest kernel's instructions one by one makes very slow.
    :param check: what is read is compared with what was written; the disk has to begin as zeros.
    :param beat_ms: how often it tells how far it is; 0: never.
    :raise InvalidInput: naming the field.
    """

    depth: int = 1
    jobs: int = 1
    block_bytes: Annotated[int, Unit.BYTES] = 4096
    write_percent: int = 0
    sequential: bool = False
    ramp_ms: int = 0
    run_ms: int = 1000
    interrupts: bool = False
    check: bool = False
    beat_ms: int = 0

    def __post_init__(self) -> None:
        rules = (
            ("depth", 1, MAX_GUEST_DEPTH),
            ("jobs", 1, MAX_GUEST_JOBS),
            ("block_bytes", SECTOR_BYTES, MAX_GUEST_BLOCK_BYTES),
            ("write_percent", 0, 100),
            ("ramp_ms", 0, MAX_IO_MS),
            ("run_ms", 1, MAX_IO_MS),
            ("beat_ms", 0, MAX_IO_MS),
        )
        problems = [
            Problem(name, "out_of_range", f"{getattr(self, name)} is not from {least} to {most}",
                    "take one that is")
            for name, least, most in rules
            if not least <= getattr(self, name) <= most
        ]  # fmt: skip
        if self.block_bytes % SECTOR_BYTES:
            problems.append(Problem("block_bytes", "out_of_range",
                                    f"{self.block_bytes} is not a multiple of {SECTOR_BYTES}",
                                    "disks have sectors of 512 bytes"))  # fmt: skip
        if problems:
            raise InvalidInput("the guest cannot do that load", problems=problems)

    def command_line(self) -> str:
        """The guest's settings, as ``vmtune/lab/guest/settings.h`` describes them."""
        values = {
            "io_depth": self.depth,
            "io_jobs": self.jobs,
            "io_block": self.block_bytes,
            "io_write": self.write_percent,
            "io_sequential": int(self.sequential),
            "io_ramp_ms": self.ramp_ms,
            "io_ms": self.run_ms,
            "io_wait": int(self.interrupts),
            "io_check": int(self.check),
            "beat_ms": self.beat_ms,
        }
        return " ".join(f"{name}={value}" for name, value in values.items())


@dataclass(frozen=True, slots=True)
class LatencyBin:
    """Requests that took about as long: from *low_ns* to before *high_ns*."""

    low_ns: _Nanoseconds
    high_ns: _Nanoseconds
    requests: _Count


@dataclass(frozen=True, slots=True)
class GuestLatency:
    """How long requests took: from when the guest made one to when it saw the answer.

    :param bins: those with requests, in order; each is as wide as a 32nd of what it begins with.
    """

    requests: _Count
    mean_ns: _Nanoseconds
    min_ns: _Nanoseconds
    max_ns: _Nanoseconds
    bins: Annotated[tuple[LatencyBin, ...], MaxLen(MOST_BINS)] = ()

    def percentile_ns(self, percent: float) -> float | None:
        """*percent* of the requests took no longer, to within the width of a bin: its middle, or
        the longest; None without requests.

        :param percent: above 0, to 100.
        """
        wanted = self.requests * percent / 100
        seen = 0
        for each in self.bins:
            seen += each.requests
            if seen >= wanted:
                return max(self.min_ns, min((each.low_ns + each.high_ns) / 2, self.max_ns))
        return None


def merged(parts: Iterable[GuestLatency]) -> GuestLatency:
    """The latencies of several kinds of requests as one: of those with the same bins."""
    found = [part for part in parts if part.requests]
    requests = sum(part.requests for part in found)
    if not requests:
        return GuestLatency(0, 0, 0, 0)
    bins: dict[tuple[float, float], int] = {}
    for part in found:
        for each in part.bins:
            place = (each.low_ns, each.high_ns)
            bins[place] = bins.get(place, 0) + each.requests
    return GuestLatency(
        requests,
        sum(part.mean_ns * part.requests for part in found) / requests,
        min(part.min_ns for part in found),
        max(part.max_ns for part in found),
        tuple(LatencyBin(*place, count) for place, count in sorted(bins.items())),
    )


@dataclass(frozen=True, slots=True)
class GuestIo:
    """What came of a load of the guest's disks.

    :param block_bytes: of each request.
    :param queues: that were used, of all disks.
    :param places: of the first queue, for requests.
    :param depth: requests under way at once, of all jobs.
    :param counted_us: the time in which requests counted, by the guest's clock.
    :param errors: requests that the disk answered with an error; they count in no latency.
    :param wrong: words that were not what was written; 0 where it was not asked to check.
    :param wakes: how often the guest had to tell a disk of new requests: each is an exit of the
        guest. Of the whole load, the ramp included.
    :param interrupts: that woke a vCPU; likewise.
    """

    block_bytes: _Count
    disks: _Count
    queues: _Count
    places: _Count
    depth: _Count
    disk_bytes: _Count
    counted_us: _Count
    read: GuestLatency
    write: GuestLatency
    errors: _Count = 0
    wrong: _Count = 0
    wakes: _Count = 0
    interrupts: _Count = 0

    @property
    def latency(self) -> GuestLatency:
        """Of reads and writes together."""
        return merged((self.read, self.write))

    @property
    def requests(self) -> int:
        """That were answered in the time that counted."""
        return self.read.requests + self.write.requests

    @property
    def iops(self) -> float:
        """Requests per second."""
        return self.requests * 1e6 / self.counted_us if self.counted_us else 0.0


def failure_of(found: GuestIo) -> str:
    """Why a load is no measurement, in words; empty where it is one."""
    if found.errors:
        return f"the disk answered {found.errors:,} requests with an error"
    if found.wrong:
        return f"{found.wrong:,} words were read that are not what was written"
    return "" if found.requests else "no request was answered while they counted"
