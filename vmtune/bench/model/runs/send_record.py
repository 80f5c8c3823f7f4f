"""What a QEMU with vmtune's patch counts of the sends of a migration."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Annotated

from annotated_types import Interval, MaxLen

from vmtune.units import Unit

_Count = Annotated[int, Interval(ge=0, le=(1 << 63) - 1), Unit.COUNT]
_Bytes = Annotated[int, Interval(ge=0, le=(1 << 63) - 1), Unit.BYTES]
_Microseconds = Annotated[int, Interval(ge=0, le=(1 << 63) - 1), Unit.US]


@dataclass(frozen=True, slots=True)
class SendCounts:
    """The sendmsg calls of the threads that send, and zero-copy's flushes.

    :param sends: calls that sent something.
    :param sent_bytes: what they sent, headers included.
    :param send_us: how long the calls took, added up over the threads: waiting for room in the
        socket counts.
    :param send_cpu_us: the CPU time of the calls.
    :param zero_copy_sends: those of the calls that asked the kernel not to copy.
    :param zero_copy_bytes: what these sent.
    :param copied_sends: zero-copy sends that the kernel copied all the same. It tells so when they
        are flushed.
    :param flushes: how often a channel waited until the kernel was done with its zero-copy sends.
    :param flush_us: how long these waits took, one after the other.
    """

    sends: _Count = 0
    sent_bytes: _Bytes = 0
    send_us: _Microseconds = 0
    send_cpu_us: _Microseconds = 0
    zero_copy_sends: _Count = 0
    zero_copy_bytes: _Bytes = 0
    copied_sends: _Count = 0
    flushes: _Count = 0
    flush_us: _Microseconds = 0

    def since(self, before: SendCounts) -> SendCounts:
        """What came after *before*; never less than 0, for figures are read one by one."""
        pairs = zip(astuple(self), astuple(before), strict=True)
        return SendCounts(*(max(0, now - then) for now, then in pairs))


@dataclass(frozen=True, slots=True)
class IterationSends:
    """The sends of one iteration.

    :param iteration: as QEMU counts them. Iterations that no sample has seen are part of the next
        one.
    :param at_ms: when it was last seen.
    :param counts: since the iteration before. A flush at an iteration's end is mostly seen in the
        next one, for QEMU counts that from before it.
    """

    iteration: Annotated[int, Interval(ge=0, le=(1 << 63) - 1), Unit.NONE]
    at_ms: Annotated[float, Interval(ge=0, le=1e12)]
    counts: SendCounts


@dataclass(frozen=True, slots=True)
class SendRecord:
    """The sends of a run's source.

    :param total: from the migration's start to the last look: under libvirt, which ends the source
        at once, what came after it is missing.
    :param iterations: the same, one by one.
    """

    total: SendCounts
    iterations: Annotated[tuple[IterationSends, ...], MaxLen(1 << 20)] = ()
