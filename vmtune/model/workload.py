"""What the guest of a measurement does to its memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated

from annotated_types import Interval

from vmtune.errors import InvalidInput, Problem
from vmtune.units import PAGE_BYTES, Unit

_MIB = 1 << 20
_GIB = 1 << 30
_HOUR_MS = 3_600_000
_Number = Annotated[int, Interval(ge=0, le=1 << 32)]
_Bytes = Annotated[int, Interval(ge=0, le=1 << 32), Unit.BYTES]
_Region = Annotated[int, Interval(ge=0, le=1 << 38), Unit.BYTES]


@dataclass(frozen=True, slots=True)
class Workload:
    """The load of ``vmtune/lab/guest``: one worker on each vCPU writes over its part of a region.

    A worker goes over its part from its first byte to its last, rests, and begins again: that is
    a pass. The parts are whole pages of 4096 bytes, as many for each worker as for the others,
    give or take one.

    What a page holds is decided once for good, by its number: zeros, bytes that no algorithm
    compresses, or a pattern that compresses well. The kinds are spread evenly over the region, so
    every part and every stretch of 100 pages has the same shares. All pages are laid out before
    the first pass, and a page remains of its kind however often it is written. With both shares
    at 0 nothing is laid out: the region is the zeros that QEMU gave, but for the bytes written.

    :param region_bytes: the whole working set, of all workers together: one stretch of the VM's
        memory, below 4 GiB if there is one that large, else above. On the machine type pc a VM of
        3.5 GiB or more has 3 GiB of it below, less the guest's program, and the rest above.
    :param stride_bytes: from one written byte to the next. 4096 writes one byte of each page,
        more leaves pages out, 1 to 4 write the whole page.
    :param dirty_mb_per_s: how fast the whole guest may dirty memory, in MB (10^6 bytes) a second,
        the same for each worker; 0: as fast as it can. What counts is 4096 bytes for each page
        written to, once in a pass, whatever the stride; QEMU sees less when it looks less often
        than a pass takes, as a page is dirty only once between two looks. Laying out does not
        count. Time of rest is not caught up on.
    :param zero_percent: share of the pages that hold zeros, and are written with zeros.
    :param random_percent: share of the pages with incompressible bytes. At a stride above 4 only
        the bytes written change, which leaves the rest of the page as it was laid out.
    :param idle_ms: rest of a worker after each of its passes. In ring 0 a worker that waits, for
        this or for its rate, halts its vCPU; in ring 3 it cannot, and uses the host's CPU up.
    :param beat_ms: how often each worker writes a byte to the debug console while it works or
        rests; 0: never. See ``vmtune/lab/guest/beat.h`` for how to hear it.
    :param check: 1: what is written are words of 8 bytes that tell their place and pass, and each
        pass looks first whether those of the pass before are there; 0: no.
    :param cpu_ring: the processor's protection ring that the workers run in, 0 or 3. Mostly it
        makes no difference. Under a KVM that emulates a guest kernel's instructions one by one,
        at about a microsecond each, ring 3 is a hundred times as fast, and the only way to write
        whole pages within reasonable time. With a share above 0 they run in ring 3 in any case.
    :param skew_percent: 0: a pass goes over the pages in their order. 50 to 99: it writes to as
        many pages, each drawn anew: of 100 draws so many are of the first 100 - skew percent of the
        part, among these again so many of their first, and so on. 50 draws all alike; 80 is the
        80-20 rule (the self-similar distribution of Gray et al., SIGMOD 1994, by steps). All pages
        are written once before the first pass.
    :raise InvalidInput: naming the field.
    """

    region_bytes: _Region = 128 * _MIB
    stride_bytes: _Bytes = PAGE_BYTES
    dirty_mb_per_s: _Number = 0
    zero_percent: _Number = 0
    random_percent: _Number = 0
    idle_ms: _Number = 0
    beat_ms: _Number = 0
    check: _Number = 0
    cpu_ring: _Number = 0
    skew_percent: _Number = 0

    def __post_init__(self) -> None:
        problems = [
            Problem(name, "out_of_range", f"{value} is {reason}", remedy)
            for name, value, holds, reason, remedy in self._rules()
            if not holds
        ]
        if problems:
            raise InvalidInput("the guest's workload is not usable", problems=problems)

    def _rules(self) -> list[tuple[str, int, bool, str, str]]:
        """Of each rule: the field, its value, whether it holds, the reason and the remedy."""
        region, stride, rate = self.region_bytes, self.stride_bytes, self.dirty_mb_per_s
        zero, random = self.zero_percent, self.random_percent
        shares = [("zero_percent", zero), ("random_percent", random)]
        times = [("idle_ms", self.idle_ms), ("beat_ms", self.beat_ms)]
        return [
            (
                "stride_bytes",
                stride,
                1 <= stride <= _GIB,
                "not from 1 byte to 1 GiB",
                "4096 writes one byte of each page",
            ),
            (
                "region_bytes",
                region,
                stride <= region < 256 * _GIB,
                f"not from one stride, {stride} bytes, to 256 GiB - 1",
                "the guest writes to one stretch of memory: take less",
            ),
            (
                "dirty_mb_per_s",
                rate,
                0 <= rate <= 1_000_000,
                "not from 0 to 1,000,000 MB/s",
                "0 sets no limit",
            ),
            *(
                (name, share, 0 <= share <= 100, "no share from 0 to 100 %", "give 0 to 100")
                for name, share in shares
            ),
            (
                "random_percent",
                random,
                any(not 0 <= share <= 100 for _, share in shares) or zero + random <= 100,
                f"more than the {100 - zero} % that zero_percent leaves",
                "the two shares together are 100 at most",
            ),
            *(
                (name, time, 0 <= time <= _HOUR_MS, "not from 0 ms to an hour", "0 means none")
                for name, time in times
            ),
            (
                "check",
                self.check,
                self.check in (0, 1)
                and not (self.check and (stride % 8 or region % 8 or zero or random)),
                "neither 0 nor 1, or 1 with a stride or region that is not a multiple of 8 bytes, "
                "or with shares",
                "check whole words, without zero_percent and random_percent",
            ),
            ("cpu_ring", self.cpu_ring, self.cpu_ring in (0, 3), "neither 0 nor 3", "give 0 or 3"),
            (
                "skew_percent",
                self.skew_percent,
                not self.skew_percent
                or (50 <= self.skew_percent <= 99 and not PAGE_BYTES % stride and not self.check),
                "neither 0 nor 50 to 99, or goes with check or a stride that does not divide 4096",
                "0 writes the pages in order, 50 draws all alike, 80 most from the first",
            ),
        ]

    def command_line(self) -> str:
        """The guest's settings, as ``vmtune/lab/guest/settings.h`` describes them.

        What is off at 0 is left out.
        """
        values = {name: getattr(self, field) for name, field in GUEST_NAMES.items()}
        return " ".join(
            f"{name}={value}" for name, value in values.items() if value or name in _ALWAYS_SAID
        )

    @classmethod
    def from_guest(cls, values: Mapping[str, int]) -> Workload:
        """The workload of which the guest says all of :data:`GUEST_NAMES`.

        :raise InvalidInput: it is none that a guest can have.
        """
        return cls(**{field: values[name] for name, field in GUEST_NAMES.items()})


GUEST_NAMES: Mapping[str, str] = {
    "region": "region_bytes",
    "stride": "stride_bytes",
    "idle_ms": "idle_ms",
    "dirty_mb": "dirty_mb_per_s",
    "zero": "zero_percent",
    "random": "random_percent",
    "beat_ms": "beat_ms",
    "check": "check",
    "ring": "cpu_ring",
    "skew": "skew_percent",
}
"""The fields of a workload by the guest's names for them."""

_ALWAYS_SAID = ("region", "stride", "idle_ms")

assert sorted(GUEST_NAMES.values()) == sorted(each.name for each in fields(Workload))
