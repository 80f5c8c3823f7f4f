"""Which convergence steps are due.

Steps fire in their order, each once, only while pre-copy runs: a step's trigger is evaluated when
all steps before it have fired.

**Iterations.** QEMU counts bitmap synchronisations (``dirty-sync-count``): 1 during the first pass
over all memory. An iteration has ended when the count is higher than at the sample before; what
remains then, freshly dirtied pages included, is what the next iteration has to send. Since QEMU 11
it synchronises about every 100 ms where post-copy is on, so that the count rises within the first
pass. Where that was seen, an iteration has ended when as much was sent as remained at its
beginning, and the count has risen.

**Stalled for s seconds** means one of:

- At an iteration's end: the least that remained at any iteration's end has not shrunk by
  *shrink_percent* for s seconds. It is judged only at an iteration's end, because within one
  the remaining bytes shrink whether or not the migration converges.
- Within an iteration: the remaining bytes have not shrunk at all for s seconds, so nothing is
  being sent.

With *near_percent* only the first counts, and only where what remains exceeds that least by no
more: a local minimum, at which KubeVirt's VEP 248 switches over.

**Times** count from the migration's start; where disks are copied before, from when these had
caught up: what converges or does not is the memory.

Nothing has stalled where nothing remains. When a step fires, both clocks begin again, so that what
it does has time to work before the next stalled step fires.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from vmtune import units
from vmtune.model.migration.record import QemuStatus, Sample
from vmtune.model.migration.steps import AfterIterations, AfterSeconds, Later, Stalled, Step
from vmtune.units import Unit


@dataclass(frozen=True, slots=True)
class FiredStep:
    """A step that is due now.

    :param number: its place in the list, from 0.
    :param reason: why, in a sentence, with the figures that made it due.
    """

    number: int
    step: Step
    at_ms: int
    iteration: int
    reason: str


@dataclass(frozen=True, slots=True)
class Low:
    """The least remaining bytes so far, and when they last shrank by enough."""

    remaining_bytes: int
    at_ms: int

    def after(self, remaining_bytes: int, at_ms: int, shrink_percent: float) -> Low:
        """The low after *remaining_bytes*, which counts only if it is smaller by enough."""
        if remaining_bytes * 100 <= self.remaining_bytes * (100 - shrink_percent):
            return Low(remaining_bytes, at_ms)
        return self


@dataclass(frozen=True, slots=True)
class History:
    """The state between samples. After a restart of vmtune, :func:`remembered` has it.

    :param fired: how many steps have fired.
    :param iteration: at the last sample, from 1; None before the first sample.
    :param count: QEMU's, at the last sample.
    :param counts_within: QEMU's count rises within a pass, too.
    :param to_send: bytes sent by the end of the pass that is under way.
    :param ends: by the shrink that a step asks for, the low at iterations' ends.
    :param fired_ms: when the last step fired; 0 before the first.
    :param moved: within the iteration, when remaining bytes last shrank.
    :param begins_ms: when the memory began to be sent, after disks; 0 at the migration's start.
    """

    fired: int = 0
    iteration: int | None = None
    count: int = 0
    counts_within: bool = False
    to_send: int = 0
    ends: tuple[tuple[int, Low], ...] = ()
    moved: Low | None = None
    fired_ms: int = 0
    begins_ms: int = 0


def due(steps: Sequence[Step], history: History, sample: Sample) -> tuple[History, list[FiredStep]]:
    """The steps that *sample* makes due, in order, and the history after it.

    Samples come in the order of their ``at_ms``. More than one step may fire at once, but never
    two for the same stall.
    """
    if sample.status is not QemuStatus.ACTIVE or history.fired >= len(steps):
        return history, []
    history, iteration_ended = _seen(steps, history, sample)
    fired: list[FiredStep] = []
    for number, step in enumerate(steps[history.fired :], start=history.fired):
        if step.of_copies:
            continue  # its time was before the memory's
        reason = _reason(step, history, sample, iteration_ended)
        if not reason:
            break
        fired.append(FiredStep(number, step, sample.at_ms, sample.iteration, reason))
        history = _with_fired(history, number, sample.at_ms)
    return history, fired


def remembered(
    steps: Sequence[Step], fired: Iterable[tuple[int, int]], samples: Iterable[Sample]
) -> History:
    """The history of a migration that an earlier process has observed: iterations and stalls count
    on from there. Without samples the counts begin anew.

    :param fired: number and ``at_ms`` of each step that has fired, by the record.
    :param samples: the stored ones, in the order of their ``at_ms``.
    """
    history = History()
    ahead = sorted(fired, key=lambda one: one[1])
    for sample in samples:
        if sample.status is QemuStatus.ACTIVE:
            history, _ = _seen(steps, history, sample)
        while ahead and ahead[0][1] <= sample.at_ms:
            history = _with_fired(history, *ahead.pop(0))
    for number, at_ms in ahead:  # the last samples may be lost
        history = _with_fired(history, number, at_ms)
    return history


def _with_fired(history: History, number: int, at_ms: int) -> History:
    fired = max(history.fired, number + 1)
    return _clocks_anew(replace(history, fired=fired, fired_ms=at_ms), at_ms)


def _seen(steps: Sequence[Step], history: History, sample: Sample) -> tuple[History, bool]:
    """*history* with *sample*, and whether an iteration has ended."""
    before, history = history, _counted(history, sample)
    ended = before.iteration is not None and history.iteration != before.iteration
    now, remaining = sample.at_ms, sample.remaining_bytes
    ends = dict(history.ends)
    if ended:
        for shrink in {s.trigger.shrink_percent for s in steps if isinstance(s.trigger, Stalled)}:
            low = ends.get(shrink)
            ends[shrink] = low.after(remaining, now, shrink) if low else Low(remaining, now)
    moved = history.moved
    if moved is None or ended or remaining < moved.remaining_bytes:
        moved = Low(remaining, now)
    return replace(history, ends=tuple(sorted(ends.items())), moved=moved), ended


def _counted(history: History, sample: Sample) -> History:
    """*history* with the iteration that is under way at *sample*."""
    count, sent = sample.iteration, _sent_bytes(sample)
    if history.iteration is None and _is_under_way(sample.total_bytes, sample):
        history = replace(history, iteration=1, count=1, to_send=sample.total_bytes)
    elif history.iteration is None:
        return replace(history, iteration=count, count=count)
    rises = count - history.count
    history = replace(history, count=count)
    if rises <= 0:
        return history
    assert history.iteration is not None
    within = _is_under_way(history.to_send, sample) and (
        history.counts_within or history.iteration == 1
    )
    if within:
        return replace(history, counts_within=True)
    iteration = history.iteration + (1 if history.counts_within else rises)
    return replace(history, iteration=iteration, to_send=sent + sample.remaining_bytes)


def _is_under_way(to_send: int, sample: Sample) -> bool:
    """Whether a pass that ends at *to_send* bytes has not ended: what it still has to send is a
    part of what remains, but for some pages that are just being sent. It is not where QEMU leaves
    pages out, such as the guest's free ones."""
    return 0 < to_send - _sent_bytes(sample) <= sample.remaining_bytes + sample.total_bytes // 64


def _sent_bytes(sample: Sample) -> int:
    return (sample.zero_pages + sample.normal_pages) * sample.page_size_bytes


def _clocks_anew(history: History, now_ms: int) -> History:
    ends = tuple((shrink, replace(low, at_ms=now_ms)) for shrink, low in history.ends)
    moved = replace(history.moved, at_ms=now_ms) if history.moved else None
    return replace(history, ends=ends, moved=moved)


def _reason(step: Step, history: History, sample: Sample, iteration_ended: bool) -> str:
    """Why *step* is due; empty when it is not."""
    match step.trigger:
        case AfterIterations(wanted):
            completed = (history.iteration or 1) - 1
            if completed >= wanted:
                return f"{completed} iterations completed, and {wanted} were to be waited for"
        case AfterSeconds(seconds):
            passed_ms = sample.at_ms - history.begins_ms
            if passed_ms >= seconds * 1000:
                of = " of sending memory" if history.begins_ms else ""
                return f"{passed_ms / 1000:.1f} s passed{of}, and {seconds} were to be waited for"
        case Later(seconds):
            passed_ms = sample.at_ms - max(history.fired_ms, history.begins_ms)
            if passed_ms >= seconds * 1000:
                since = "the step before" if history.fired else "the start"
                return f"{passed_ms / 1000:.1f} s passed since {since}"
        case Stalled():
            return _stall(step.trigger, history, sample, iteration_ended)
    return ""


def _stall(trigger: Stalled, history: History, sample: Sample, iteration_ended: bool) -> str:
    if not sample.remaining_bytes:
        return ""
    low = dict(history.ends).get(trigger.shrink_percent)
    near = trigger.near_percent
    if near is not None and (
        low is None or sample.remaining_bytes * 100 > low.remaining_bytes * (100 + near)
    ):
        return ""
    if iteration_ended and low and sample.at_ms - low.at_ms >= trigger.seconds * 1000:
        least = units.approximate(low.remaining_bytes, Unit.BYTES)
        return (
            f"what remained at iterations' ends has not shrunk by {trigger.shrink_percent} % "
            f"from {least} for {(sample.at_ms - low.at_ms) / 1000:.1f} s"
        )
    moved = history.moved
    if near is None and moved and sample.at_ms - moved.at_ms >= trigger.seconds * 1000:
        left = units.approximate(moved.remaining_bytes, Unit.BYTES)
        still_s = (sample.at_ms - moved.at_ms) / 1000
        return f"nothing of the remaining {left} was sent for {still_s:.1f} s"
    return ""
