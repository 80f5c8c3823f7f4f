"""A pre-copy migration in simulated time, as QEMU does it, steered or not.

Each tick of 50 ms sends what the throughput allows; what is dirty is a number of bytes, not a set
of pages. The bitmap is synchronised when less remains than throughput times the downtime limit
(migration/migration.c, migration_iteration_run). Auto-converge acts at a synchronisation at least
1 s after the last, every second time that more was dirtied than its trigger (migration/ram.c).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vmtune.intent.steering import Act, Relax, Steering, steer
from vmtune.model.migration.record import QemuStatus, Sample
from vmtune.model.migration.steps import SetValues, StepAction
from vmtune.units import PAGE_BYTES

TICK_MS = 50
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Guest:
    """Writes to a region, over and over.

    :param rate: bytes per second, by the seconds since the start.
    """

    memory_bytes: float
    region_bytes: float
    rate: Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Simulated:
    """How it went.

    :param outcome: completed, postcopy, paused, aborted, or running at the end of the time.
    :param throttled: by tick, the percent that was withheld.
    :param limits: downtime limits that were in force, the first one first.
    """

    outcome: str
    total_ms: int
    silence_ms: float
    throttled: tuple[int, ...]
    limits: tuple[int, ...]
    acts: tuple[Act, ...]


def run(
    guest: Guest,
    bytes_per_s: float,
    steering: Steering,
    most_s: int = 300,
    hand_over_ms: int = 0,
    estimated_share: float = 1.0,
) -> Simulated:
    """One migration.

    :param estimated_share: QEMU holds what remains against this share of the throughput: its
        estimate may be lower than what samples show.
    :param hand_over_ms: when another process takes over, which knows only what is set; 0: never.
    """
    state, limit = steering, steering.limit_ms
    percent, most_percent, high = 0, 1, 0
    remaining, unsynced, sent, count, judged_ms = guest.memory_bytes, 0.0, 0.0, 1, 0
    period_sent = 0.0
    throttled: list[int] = []
    limits, acts = [limit], list[Act]()

    def fits(limit_ms: int) -> float:
        return bytes_per_s * estimated_share * limit_ms / 1000

    for at_ms in range(0, most_s * 1000, TICK_MS):
        tick_s = TICK_MS / 1000
        portion = min(remaining, bytes_per_s * tick_s)
        remaining, sent, period_sent = remaining - portion, sent + portion, period_sent + portion
        wrote = guest.rate(at_ms / 1000) * tick_s * (1 - percent / 100)
        unsynced = min(guest.region_bytes, unsynced + wrote)
        throttled.append(percent)
        if remaining <= fits(limit):
            dirtied = unsynced
            remaining = min(remaining + dirtied, max(guest.region_bytes, remaining))
            unsynced, count = 0.0, count + 1
            if remaining <= fits(limit):
                silence = remaining / bytes_per_s * 1000
                total = round(at_ms + silence)
                return Simulated(
                    "completed", total, silence, tuple(throttled), tuple(limits), tuple(acts)
                )
            if state.able.auto_converge and at_ms - judged_ms >= 1000:
                judged_ms = at_ms
                high += dirtied > period_sent / 100
                period_sent = 0.0
                if high >= 2:
                    high, percent = 0, most_percent
        sample = _sample(guest, at_ms, count, remaining, sent, bytes_per_s, percent)
        if hand_over_ms and at_ms >= hand_over_ms:
            hand_over_ms = 0
            state = Steering(state.intent, state.able, limit, most_percent, state.relaxed)
        state, fresh = steer(state, sample)
        acts += fresh
        for act in fresh:
            match act.action:
                case SetValues(values):
                    chosen = dict(values)
                    limit = int(chosen.get("downtime_limit_ms", limit))
                    most_percent = int(chosen.get("max_cpu_throttle_percent", most_percent))
                    limits.append(limit)
                case StepAction() as action:
                    ended = _ended(action, at_ms, (remaining + unsynced) / bytes_per_s * 1000)
                    return Simulated(*ended, tuple(throttled), tuple(limits), tuple(acts))
                case Relax():
                    pass
    return Simulated("running", most_s * 1000, 0.0, tuple(throttled), tuple(limits), tuple(acts))


def _ended(action: StepAction, at_ms: int, rest_ms: float) -> tuple[str, int, float]:
    """Outcome, total time and silence, where the rest takes *rest_ms*."""
    match action:
        case StepAction.ABORT:
            return "aborted", at_ms, 0.0
        case StepAction.POSTCOPY:
            return "postcopy", at_ms + round(rest_ms), 0.0
        case StepAction.PAUSE:
            return "paused", at_ms + round(rest_ms), rest_ms


def _sample(
    guest: Guest, at_ms: int, count: int, remaining: float, sent: float, rate: float, percent: int
) -> Sample:
    return Sample(
        at_ms, QemuStatus.ACTIVE, count, False, round(sent), round(remaining),
        round(guest.memory_bytes), 0, round(sent / PAGE_BYTES), PAGE_BYTES, 0, round(rate),
        0, 0, None, percent, 0, 0, 0,
    )  # fmt: skip
