"""The forecast of a migration that is not begun: how long, how still, will it end.

The course of the passes (:mod:`vmtune.forecast.course`) is followed from the guest's dirty curve,
once with what is likely and once with each combination of the bounds of what is not known for
sure: the path's throughput, the curve (also how it begins, where no short times were measured), the
memory in use and what of it is sent. The bounds
of the results are then widened by the errors that were measured (:mod:`vmtune.forecast.errors`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from vmtune.forecast.course import AutoConverge, Conditions, Course, Moment, follow
from vmtune.forecast.dirty_curve import DirtyCurve
from vmtune.forecast.errors import USUAL, Errors
from vmtune.forecast.held_memory import held_range
from vmtune.forecast.needs import LEAST_BUSY, Needs, needs
from vmtune.forecast.path import Throughput
from vmtune.forecast.probe import DirtyProbe
from vmtune.forecast.ranges import Range
from vmtune.forecast.rhythm import Rhythm, bursty

_QEMU_ITSELF_BYTES = 40 << 20
"""Of the memory of a QEMU's process what is not the guest's: 39 to 40 MiB, QEMU 10.0 of Debian
with the lab's guest."""
_PASSED_OVER_BYTES_PER_S = 3e9
"""How fast QEMU passes over memory that the guest never used: 100 to 120 MB in 24 to 148 ms of 58
migrations in a nested VM with other work on it, 60 in the middle. It is more on hardware, by
how much was not measured."""
_CURVE = (0.9, 1.0, 1.1)
"""How much the guest may do more or less than while it was measured."""
_COMPRESSED = (0.3, 0.6, 1.0)
"""Bytes sent for a byte of memory where pages are compressed and nobody knows how well."""
_DELTAS = (0.002, 0.1, 0.6)
"""The same of what XBZRLE sends of a page that it has sent before."""
_PACKED = (0.8, 1.25)
"""How much more or less is sent than the sampled pages say."""
_FEWEST_CHANGED = 20
"""Of fewer pages their contents say too little."""
_LEAST_SENT = 0.002
"""Of a page of zeros some 9 bytes are sent: its address and a flag."""
_ANY_PERCENT = 1
"""The trigger with which auto-converge throttles whatever the guest dirties."""
_BUSY = (LEAST_BUSY, 1.0)
"""Of the CPU time that it may have, what a guest needs. The first is likely; so the migrations of
the dataset with auto-converge went best."""


@dataclass(frozen=True, slots=True)
class Prospect:
    """What is to be expected.

    :param ends: whether it ends by itself; None where that depends on what is not known for sure.
    :param total_ms: from QEMU's start of the migration to the guest's running on the destination;
        None where it will not end, like all below.
    :param silence_ms: how long the guest stands still.
    :param sent_bytes: on the wire.
    :param passes: over the guest's memory.
    :param throttle_percent: the most of the guest's CPU time that auto-converge withholds.
    :param needs: what would let it end; None where it will.
    """

    ends: bool | None
    total_ms: Range | None
    silence_ms: Range | None
    sent_bytes: Range | None
    passes: Range | None
    throttle_percent: Range | None
    needs: Needs | None


def used_bytes(probe: DirtyProbe) -> Range:
    """What of the guest's memory has to be sent in the first pass: no pages that were never used,
    nor, where that is known, pages of zeros (QEMU, migration/ram.c, save_zero_page)."""
    most = float(probe.memory_bytes)
    dirtied = min(most, max(point.dirty_bytes for point in probe.points))
    if probe.held_bytes is not None and probe.contents is not None:
        held = held_range(probe.held_bytes, probe.memory_bytes, probe.contents)
        backed = 0.0 if probe.used_bytes is None else float(probe.used_bytes - _QEMU_ITSELF_BYTES)
        if not held.low <= backed <= held.high:
            return held
        # It holds no pages of zeros that the sample would tell from none, and is exact then.
        by = backed / held.likely
        return Range(held.low * by, backed, min(most, max(backed, held.high * by)))
    if probe.used_bytes is None:
        return Range(max(dirtied, 1.0), most, most)
    guests = max(probe.used_bytes - _QEMU_ITSELF_BYTES, dirtied, 1.0)
    return Range(guests, guests, min(max(probe.used_bytes, guests), most))


def first_share(probe: DirtyProbe, compressed: bool = False) -> Range:
    """Bytes sent in the first pass for a byte of the memory that has to be sent.

    :param compressed: pages are compressed, and not by what changed in them (XBZRLE): in the first
        pass that saves nothing.
    """
    held = probe.contents
    if not compressed:
        return Range.exactly(1.0)
    return Range(*_COMPRESSED) if held is None else _about(max(_LEAST_SENT, held.packed_share))


def later_share(probe: DirtyProbe, compressed: bool = False) -> Range:
    """Bytes sent in later passes for a byte that the guest has written: by those pages that it
    changed while it was measured, since what it writes may differ from what it keeps.

    :param compressed: pages are compressed, and not by what changed in them.
    """
    changed, held = probe.changed, probe.contents
    if changed is not None and changed.pages < _FEWEST_CHANGED:
        changed = None
    written = 1.0 if changed is None else 1 - changed.zero_share
    packed = changed or held
    if compressed and packed is None:
        return Range(*(max(_LEAST_SENT, written * share) for share in _COMPRESSED))
    if packed is None:
        return Range.exactly(1.0)
    share = packed.packed_share if compressed else 1.0
    about = _about(max(_LEAST_SENT, written * share))
    return about if changed is not None else Range(about.low, about.likely, max(about.high, share))


_Shares = tuple[float, float, float]
"""Bytes sent for a byte of memory: in the first pass, in later ones, and of those for a byte of a
page that XBZRLE has sent before."""


def _shares(probe: DirtyProbe, compressed: bool, deltas: bool) -> tuple[_Shares, _Shares, _Shares]:
    """The least, the likely and the most."""
    first = first_share(probe, compressed and not deltas)
    later = later_share(probe, compressed and not deltas)
    delta = Range(*_DELTAS) if deltas else Range.exactly(1.0)
    return (
        (first.low, later.low, delta.low),
        (first.likely, later.likely, delta.likely),
        (first.high, later.high, delta.high),
    )


def _about(share: float) -> Range:
    return Range(share * _PACKED[0], share, min(1.0, share * _PACKED[1]))


def _bounds(of: Range) -> tuple[float, float, float]:
    return of.low, of.likely, of.high


def expect(
    probe: DirtyProbe,
    throughput: Throughput,
    conditions: Conditions,
    compressed: bool = False,
    errors: Errors = USUAL,
) -> Prospect:
    """The prospect under *conditions*.

    :param throughput: of the path; takes the place of the conditions'.
    :param compressed: pages are compressed.
    """
    conditions = replace(conditions, limited=throughput.limited)
    first = used_bytes(probe)
    curve = probe.curve()
    deltas = conditions.cache_bytes is not None
    shares_of = _shares(probe, compressed, deltas)
    likely_shares = shares_of[1]
    shares = sorted(set(shares_of))
    held, lifted = throughput.bytes_per_s, throughput.switchover_bytes_per_s
    packed = throughput.packed_bytes_per_s if compressed and not deltas else None
    packs = _bounds(packed) if packed else (None,) * 3
    slowest, usual_pace, fastest = zip(_bounds(held), _bounds(lifted), packs, strict=True)
    paces = list(dict.fromkeys((slowest, usual_pace, fastest)))

    likely_curves = (curve, curve.bent()) if probe.lacks_short_times else (curve,)
    curves = [each.times(factor) for each in likely_curves for factor in _CURVE]

    busy = _BUSY if conditions.auto_converge else _BUSY[:1]

    def course(
        pace: tuple[float, float, float | None],
        dirties: DirtyCurve,
        sent: _Shares,
        used: float,
        busy_share: float,
        rhythm: Rhythm | None = None,
    ) -> Course:
        there = replace(
            conditions,
            throughput_bytes_per_s=pace[0],
            switchover_bytes_per_s=pace[1],
            packed_bytes_per_s=pace[2],
            first_wire_share=sent[0],
            wire_share=sent[1],
            delta_share=sent[2],
            busy_share=busy_share,
        )
        return follow(dirties, _beginning(probe, used), there, rhythm)

    def helps(dirties: DirtyCurve) -> Needs:
        usual = replace(
            conditions,
            throughput_bytes_per_s=held.likely,
            switchover_bytes_per_s=lifted.likely,
            packed_bytes_per_s=packed.likely if packed else None,
            first_wire_share=likely_shares[0],
            wire_share=likely_shares[1],
            delta_share=likely_shares[2],
            busy_share=LEAST_BUSY,
        )
        return needs(dirties, _beginning(probe, first.likely), usual)

    if guests := bursty(probe):
        fast, usual, slow = (
            [course(pace, each.curve, sent, used, share, each.rhythm) for each in guests]
            for pace, sent, used, share in (
                (fastest, shares_of[0], first.low, busy[-1]),
                (usual_pace, likely_shares, first.likely, busy[0]),
                (slowest, shares_of[2], first.high, busy[0]),
            )
        )
        found = _of_bursty(fast, usual, slow, errors)
        if found is None:
            ends = None if any(each.ends for each in fast) else False
            needed = helps(guests[len(guests) // 2].curve)
            return Prospect(ends, None, None, None, None, None, needed)
        return found
    likely = course(usual_pace, curve, likely_shares, first.likely, busy[0])
    others = [
        course(pace, dirties, sent, used, busy_share)
        for pace, dirties, sent, busy_share in product(paces, curves, shares, busy)
        for used in {first.low, first.high}
    ]
    ends = likely.ends if all(other.ends == likely.ends for other in others) else None
    finished = [other for other in others if other.ends]
    if not likely.ends:
        return Prospect(ends, None, None, None, None, None, helps(curve))
    total = Range.around(likely.left_ms, (c.left_ms for c in finished)).scaled(errors.total)
    silence = Range.around(likely.silence_ms, (c.silence_ms for c in finished))
    return Prospect(
        ends,
        total,
        silence.scaled(errors.silence).plus(errors.still_ms),
        Range.around(likely.sent_bytes, (c.sent_bytes for c in finished)).scaled(errors.sent),
        Range.around(likely.passes, (c.passes for c in finished)),
        Range.around(likely.throttle_percent, (c.throttle_percent for c in finished)),
        None,
    )


def _of_bursty(
    fast: Sequence[Course], usual: Sequence[Course], slow: Sequence[Course], errors: Errors
) -> Prospect | None:
    """Of courses by each guest that it may be: the middle, and bounds of nine in ten.

    :param fast: by the bounds with which it takes least; *slow*: with which it takes most.
    :return: None where most do not end.
    """
    ended = [[each for each in some if each.ends] for some in (fast, usual, slow)]
    if 2 * len(ended[1]) <= len(usual):
        return None

    def spread(figure: Callable[[Course], float], longest: int = 0) -> Range:
        """:param longest: how many more lie beyond the others: those that do not end."""
        least, middle, most = (sorted(map(figure, some)) for some in ended)
        likely = middle[min(len(middle) - 1, (len(middle) + longest) // 2)]
        return Range.around(likely, (_at(least or middle, 0.05), _at(most or middle, 0.95)))

    return Prospect(
        True if all(each.ends for some in (fast, usual, slow) for each in some) else None,
        spread(lambda c: c.left_ms, len(usual) - len(ended[1])).scaled(errors.total),
        spread(lambda c: c.silence_ms).scaled(errors.silence).plus(errors.still_ms),
        spread(lambda c: c.sent_bytes).scaled(errors.sent),
        spread(lambda c: c.passes),
        spread(lambda c: c.throttle_percent),
        None,
    )


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def likely_course(
    probe: DirtyProbe,
    throughput: Throughput,
    conditions: Conditions,
    compressed: bool = False,
    throttle_percent: int = 0,
    busy_share: float = 1.0,
) -> Course:
    """The course by what is likely alone, without bounds: for comparing many conditions.

    :param throughput: of the path; takes the place of the conditions'.
    :param compressed: pages are compressed.
    :param throttle_percent: of the guest's CPU time, withheld as soon as QEMU does that: from the
        second synchronisation on. It takes the place of the conditions' throttle.
    :param busy_share: of its CPU time, what the guest needs.
    """
    held = AutoConverge(throttle_percent, throttle_percent, throttle_percent, _ANY_PERCENT)
    deltas = conditions.cache_bytes is not None
    first_wire, wire, delta = _shares(probe, compressed, deltas)[1]
    packed = throughput.packed_bytes_per_s if compressed and not deltas else None
    there = replace(
        conditions,
        throughput_bytes_per_s=throughput.bytes_per_s.likely,
        switchover_bytes_per_s=throughput.switchover_bytes_per_s.likely,
        first_wire_share=first_wire,
        wire_share=wire,
        delta_share=delta,
        packed_bytes_per_s=packed.likely if packed else None,
        limited=throughput.limited,
        auto_converge=held if throttle_percent else None,
        busy_share=busy_share,
    )
    return follow(probe.curve(), _beginning(probe, used_bytes(probe).likely), there)


def _beginning(probe: DirtyProbe, used: float) -> Moment:
    """All of the guest's memory is dirty, and most of it may be unused."""
    share = min(1.0, used / probe.memory_bytes)
    return Moment(
        probe.memory_bytes, used_share=share, passed_over_bytes_per_s=_PASSED_OVER_BYTES_PER_S
    )
