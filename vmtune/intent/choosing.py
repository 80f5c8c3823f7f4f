"""Which settings a migration begins with for an intent, each with its reason."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType

from vmtune import units
from vmtune.intent.bounds import bandwidth_to_set, first_limit_ms, highest_limit_ms
from vmtune.intent.feasible import Basis, Judgement, broken_by, judge, unthrottled
from vmtune.intent.offer import Offer, Pinned
from vmtune.intent.throttling import TOLERANCE_BYTES_PER_S, DirtyLimit
from vmtune.model.migration.intent import Intent, Means
from vmtune.model.migration.stated_intent import StatedIntent
from vmtune.model.tunables.rows.storage import COPY_BANDWIDTH
from vmtune.model.tunables.tunable import Value
from vmtune.units import Unit

_BYTES_PER_S_OF_A_CHANNEL = 1e9
"""About what one connection and its thread carry: 8 to 16 saturated 100 Gbit/s (KubeVirt PR 12705),
one for each 10 Gbit/s (oVirt)."""
_MOST_CHANNELS = 16
_LEAST_CHANNELS = 2
_LEAST_FREE_CORES = 2.0
"""The guests' own CPU time comes first."""
_NOT_MEASURED = "others have started it, so that the guest was not measured: nothing is promised"
_TRIGGER, _AT_ONCE = "throttle_trigger_threshold_percent", "a throttle that is set acts at once"
_LIMITS = 8
"""How many downtime limits are compared."""
_AS_SOON, _AS_SOON_MS = 1.05, 100.0
"""Within this share and time two times are about the same."""
DIRTY_LIMIT = "vcpu_dirty_limit_mib_per_s"
_LEAST_PATH_BYTES_PER_S = 4 * TOLERANCE_BYTES_PER_S
"""On a slower path the dirty limit is too coarse."""
_SWITCHES = ("auto_converge", "dirty_limit")
_NOTHING: Pinned = MappingProxyType({})
HELD_PERCENT = 1
"""The throttle of auto-converge while nothing is to be throttled: QEMU takes no less."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A tunable's value, and why."""

    tunable: str
    value: Value
    reason: str


@dataclass(frozen=True, slots=True)
class Chosen:
    """The choices, without those that are pinned.

    :param pinned: tunables that the user has set, and that would have been chosen otherwise.
    :param judgement: whether the intent can be kept with them; None where too little is known.
    :param basis: what it rests on; None likewise.
    """

    choices: tuple[Choice, ...]
    pinned: tuple[str, ...]
    judgement: Judgement | None
    basis: Basis | None = None


def choose(
    intent: Intent,
    basis: Basis | None,
    offer: Offer,
    pinned: Pinned = _NOTHING,
    broken: str | None = None,
) -> Chosen:
    """The settings for *intent*.

    :param basis: None where the path's throughput is not known.
    :param pinned: what the user has set: it stays, and what contradicts it is not chosen.
    :param broken: why a goal cannot be kept with these values, whatever the path carries.
    """
    usable = offer.left_by(pinned)
    if basis is not None:
        basis = replace(basis, means=usable.means)
    judgement = None if basis is None else judge(intent, basis)
    if broken is not None:
        judgement = broken_by(broken)
    compressed, why = None, ""
    if _may_compress(intent, usable) and basis is not None and judgement is not None:
        if judgement.kept is not True or judgement.needs is not None:
            compressed = judge(intent, replace(basis, compressed=True))
    helps = compressed is not None and judgement is not None and _better(compressed, judgement)
    if helps and judgement is not None:
        why = _why_compressed(judgement)
        judgement = compressed
    limit = None
    if broken is None and basis is not None:
        limit, judged = _dirty_limit(intent, basis, usable)
        if limit is not None and not helps:
            judgement = judged
    with_share = basis if basis is None or not helps else replace(basis, compressed=True)

    def wanted(offer: Offer) -> Iterator[Choice]:
        yield from _limits(intent, with_share, offer.copies)
        yield from _throttle(intent, limit, offer)
        yield from _postcopy(intent, offer)
        yield from _parallel(intent, basis, offer, why)

    left = tuple(choice for choice in wanted(usable) if choice.tunable not in pinned)
    others = [choice.tunable for choice in wanted(offer)]
    others += _SWITCHES if intent.most_throttle_percent else ()
    fixed = dict.fromkeys(name for name in others if name in pinned)
    return Chosen(left, tuple(fixed), judgement, basis)


def unmeasured(intent: Intent, pinned: Pinned = _NOTHING) -> StatedIntent:
    """*intent* for a migration that others have started already: what would have been chosen and is
    to be done is told, and nothing is done."""
    chosen = choose(intent, None, Offer(postcopy=True), pinned)
    reasons = {choice.tunable: choice.reason for choice in chosen.choices}
    return StatedIntent(intent, reasons, chosen.pinned, _NOT_MEASURED, shadow=True)


def _limits(intent: Intent, basis: Basis | None, copies: int) -> Iterator[Choice]:
    beyond = None if basis is None else basis.beyond
    most = highest_limit_ms(intent, beyond)
    if intent.max_silence_ms is None:
        bound = "QEMU's own limit, since no silence is stated"
    else:
        bound = f"the most that keeps a silence of {intent.max_silence_ms:,} ms"
        if beyond is not None and beyond.measured:
            bound += f", of which guests stand still {beyond.ms} ms in any case on this path"
    first, why = _first_limit(intent, basis)
    yield Choice(
        "downtime_limit_ms", first, f"{why}; raised where needed, to at most {most} ms: {bound}"
    )
    bandwidth = bandwidth_to_set(intent)
    if bandwidth is None or intent.max_bandwidth_bytes_per_s is None:
        return
    most_sent = units.render(intent.max_bandwidth_bytes_per_s, Unit.BYTES_PER_S)
    yield Choice("max_bandwidth_bytes_per_s", bandwidth, f"the intent allows {most_sent}")
    if copies > 1:
        together = f"{copies} disks are copied at a time, and the intent allows {most_sent}"
        yield Choice(COPY_BANDWIDTH, copy_bandwidth(bandwidth, copies), together)


def copy_bandwidth(bytes_per_s: int, copies: int) -> int:
    """The limit of each of so many disks' copies, where all together may take so much."""
    return max(1, bytes_per_s // copies)


def _first_limit(intent: Intent, basis: Basis | None) -> tuple[int, str]:
    """The least downtime limit that is expected to end it about as soon as the highest would: what
    QEMU begins a pass with is decided before anybody could raise it."""
    beyond = None if basis is None else basis.beyond
    first, most = first_limit_ms(intent, beyond), highest_limit_ms(intent, beyond)
    if basis is None or intent.max_silence_ms is None:
        return first, "begins low"
    best = unthrottled(basis, most)
    if not best.ends:
        return first, "begins low"
    for number in range(_LIMITS):
        limit = round(first * (most / first) ** (number / (_LIMITS - 1)))
        course = unthrottled(basis, limit)
        if course.ends and course.left_ms <= best.left_ms * _AS_SOON + _AS_SOON_MS:
            break
    if limit <= first:
        return first, "begins low"
    return limit, f"a lower one, such as {first} ms, is expected to take longer"


def _dirty_limit(
    intent: Intent, basis: Basis, offer: Offer
) -> tuple[DirtyLimit | None, Judgement | None]:
    """What throttles by the dirty limit, where it can throttle as hard as the intent needs it, and
    what is to be expected then."""
    if basis.throughput.bytes_per_s.likely < _LEAST_PATH_BYTES_PER_S:
        return None, None
    limit = DirtyLimit.of(offer.dirty_ring_entries, basis.probe.curve().points)
    most = 0 if limit is None else limit.most_percent(intent)
    if not most:
        return None, None
    found = judge(replace(intent, max_slowdown_percent=most), replace(basis, by_time=False))
    return (limit, found) if found.kept else (None, None)


def _throttle(intent: Intent, limit: DirtyLimit | None, offer: Offer) -> Iterator[Choice]:
    most = intent.most_throttle_percent if limit is None else limit.most_percent(intent)
    if not most:
        return
    if limit is not None:
        why = f"holds back only the vCPUs that write, by up to {most} %, if that is needed"
        yield Choice("dirty_limit", True, why)
        yield Choice(DIRTY_LIMIT, limit.mib_per_s(0), "no vCPU reaches it: bounds nothing yet")
        yield Choice(_TRIGGER, 1, _AT_ONCE)
        return
    if not offer.auto_converge:
        return
    why = f"so that up to {most} % can be throttled while it runs, if that is needed"
    held = f"throttles by {HELD_PERCENT} %, the least, until more is needed"
    yield Choice("auto_converge", True, why)
    yield Choice("cpu_throttle_initial_percent", HELD_PERCENT, held)
    yield Choice(_TRIGGER, 1, _AT_ONCE)


def _postcopy(intent: Intent, offer: Offer) -> Iterator[Choice]:
    if intent.allows(Means.POSTCOPY) and offer.postcopy:
        yield Choice("postcopy", True, "so that it can be switched to, if the deadline needs it")


def _parallel(
    intent: Intent, basis: Basis | None, offer: Offer, why_compressed: str
) -> Iterator[Choice]:
    cores = offer.free_cores
    if not _may_be_parallel(intent, offer) or cores is None:
        return
    rate = math.inf if basis is None else basis.throughput.bytes_per_s.likely
    if why_compressed:
        count = min(_MOST_CHANNELS, max(_LEAST_CHANNELS, int(cores) - 1))
        why = f"{cores:.0f} cores are free, and compressing needs them"
    elif basis is not None and rate > _BYTES_PER_S_OF_A_CHANNEL:
        channels = math.ceil(rate / _BYTES_PER_S_OF_A_CHANNEL)
        count = min(_MOST_CHANNELS, max(_LEAST_CHANNELS, min(int(cores), channels)))
        carried = units.approximate(rate, Unit.BYTES_PER_S)
        why = f"the path carries {carried}, one connection about 1 GB/s; {cores:.0f} cores are free"
    else:
        return
    yield Choice("multifd", True, why)
    yield Choice("multifd_channels", count, why)
    if why_compressed:
        yield Choice("multifd_compression", "zstd", why_compressed)
    elif intent.allows(Means.ZERO_COPY) and offer.zero_copy:
        yield Choice("zero_copy_send", True, "saves the copy of each page at this throughput")


def _may_be_parallel(intent: Intent, offer: Offer) -> bool:
    if not offer.multifd or (offer.free_cores or 0) < _LEAST_FREE_CORES:
        return False
    postcopy = intent.allows(Means.POSTCOPY) and offer.postcopy
    return offer.postcopy_with_multifd or not postcopy


def _may_compress(intent: Intent, offer: Offer) -> bool:
    return offer.zstd and intent.allows(Means.COMPRESS) and _may_be_parallel(intent, offer)


def _why_compressed(without: Judgement) -> str:
    """What compression saves."""
    if without.kept is not True:
        return "by pre-copy alone the intent is not expected to be kept, compressed it is"
    return f"compressed, the intent is expected to be kept without {without.needs}"


def _better(one: Judgement, other: Judgement) -> bool:
    """Whether *one* is kept where *other* is not, or without means that cost the guest."""
    if one.kept is not True:
        return False
    return other.kept is not True or (one.needs is None and other.needs is not None)
