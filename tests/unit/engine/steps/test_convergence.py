"""When convergence steps are due."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmtune.engine.steps.convergence import FiredStep, History, due, remembered
from vmtune.model.migration.record import QemuStatus, Sample
from vmtune.model.migration.steps import (
    AfterIterations,
    AfterSeconds,
    Later,
    SetValues,
    Stalled,
    Step,
    StepAction,
    Trigger,
)

MIB = 1 << 20
SLACK = SetValues((("downtime_limit_ms", 500),))


def sample(
    at_s: float, iteration: int, remaining_mib: float, status: QemuStatus = QemuStatus.ACTIVE
) -> Sample:
    return Sample(
        at_ms=round(at_s * 1000),
        status=status,
        iteration=iteration,
        boundary=False,
        transferred_bytes=0,
        remaining_bytes=round(remaining_mib * MIB),
        total_bytes=1 << 30,
        zero_pages=0,
        normal_pages=0,
        page_size_bytes=4096,
        dirty_pages_per_s=0,
        throughput_bytes_per_s=0,
        multifd_bytes=0,
        postcopy_bytes=0,
        expected_downtime_ms=None,
        throttle_percent=0,
        missed_zero_copy=0,
        dirty_limit_throttle_us=0,
        dirty_limit_ring_full_us=0,
    )


def run(
    steps: Sequence[Step], samples: Iterable[Sample], history: History | None = None
) -> list[FiredStep]:
    history = history or History()
    fired: list[FiredStep] = []
    for each in samples:
        history, now = due(steps, history, each)
        fired += now
    return fired


def one(trigger: Trigger) -> list[Step]:
    return [Step(trigger, SLACK)]


def times(fired: Iterable[FiredStep]) -> list[int]:
    return [each.at_ms for each in fired]


def test_a_step_for_the_copies_of_disks_is_not_waited_for() -> None:
    waits = Step(AfterSeconds(1), SetValues((("copy_synchronous_writes", True),)))
    steps = [waits, Step(AfterSeconds(2), SLACK), waits, Step(AfterSeconds(3), SLACK)]
    fired = run(steps, [sample(n, 1, 100 - n) for n in range(6)])
    assert [(each.number, each.at_ms) for each in fired] == [(1, 2000), (3, 3000)]


def test_times_count_from_when_the_disks_had_caught_up() -> None:
    """A long copy of disks says nothing of how the memory converges."""
    samples = [sample(400 + n, 1, 100 - n) for n in range(0, 90, 10)]
    steps = [Step(Later(20), SLACK), Step(AfterSeconds(60), SLACK), Step(Later(10), SLACK)]
    fired = run(steps, samples, History(begins_ms=400_000))
    assert times(fired) == [420_000, 460_000, 470_000]
    assert "60.0 s passed of sending memory" in fired[1].reason
    assert times(run(steps[1:2], samples)) == [400_000]


def test_iterations_count_when_they_have_ended() -> None:
    samples = [sample(n, n, 100 / n) for n in range(1, 8)]
    (fired,) = run(one(AfterIterations(3)), samples)
    assert fired.iteration == 4
    assert "3 iterations completed" in fired.reason


def test_seconds_count_from_the_migrations_start() -> None:
    (fired,) = run(one(AfterSeconds(5)), [sample(at / 2, 1, 100 - at) for at in range(20)])
    assert fired.at_ms == 5000
    assert fired.reason == "5.0 s passed, and 5 were to be waited for"


# Iterations of 2 s; what remains at each end.
def ends(*remaining_mib: float) -> list[Sample]:
    samples = []
    for number, left in enumerate(remaining_mib):
        began = number * 2.0
        samples += [
            sample(began, number + 1, left),
            sample(began + 1, number + 1, left / 2),
            sample(began + 1.9, number + 1, left / 10),
        ]
    return samples


def test_no_shrink_at_iterations_ends_is_a_stall() -> None:
    # The first end is at 2 s, with 100 MiB.
    (fired,) = run(one(Stalled(4)), ends(1000, 100, 100, 101, 99.5, 100))
    assert fired.at_ms == 6000
    assert fired.reason == (
        "what remained at iterations' ends has not shrunk by 1 % from 100 MiB for 4.0 s"
    )


def test_a_shrink_by_enough_begins_the_seconds_anew() -> None:
    assert times(run(one(Stalled(4)), ends(1000, 100, 99, 99, 99))) == [8000]
    assert times(run(one(Stalled(4, 5)), ends(1000, 100, 99, 99, 99))) == [6000]


def test_later_counts_from_the_step_before() -> None:
    steps = [Step(AfterSeconds(5), SLACK), Step(Later(3), SLACK), Step(Later(4), SLACK)]
    samples = [sample(n, 1 + n, 100) for n in range(20)]
    assert times(run(steps, samples)) == [5000, 8000, 12_000]
    assert times(run(one(Later(3)), samples)) == [3000]
    history = remembered(steps, [(0, 5000)], samples[:7])
    assert times(run(steps, samples[7:], history)) == [8000, 12_000]


def test_a_stall_may_wait_for_a_local_minimum() -> None:
    left = [200, 100, 130, 120, 140, 103, 150, 101]
    samples = [sample(n, n, mib) for n, mib in enumerate([300, *left], start=1)]
    (fired,) = run(one(Stalled(3, 4, near_percent=4)), samples)
    assert (fired.iteration, fired.step.trigger) == (7, Stalled(3, 4, 4))
    (at_once,) = run(one(Stalled(3, 4)), samples)
    assert at_once.iteration == 6
    still = [sample(n, 2, 100) for n in range(9)]
    assert run(one(Stalled(3, 4, near_percent=4)), still) == []


def test_small_shrinks_add_up() -> None:
    assert run(one(Stalled(4, 1)), ends(1000, 100, 99.4, 98.8, 98.2, 97.6, 97)) == []


def test_what_remains_within_an_iteration_is_no_progress() -> None:
    # It falls to a tenth in each iteration and is back at each end.
    assert run(one(Stalled(4)), ends(1000, 100, 100, 100))


def test_a_long_iteration_is_no_stall_before_its_end() -> None:
    long = [sample(at, 2, 1000 - at) for at in range(2, 60)]
    # Little is left when the first ends: what the next begins with is no stall of the first.
    first = [sample(0, 1, 2000), sample(1.9, 1, 5)]
    assert run(one(Stalled(10)), [*first, *long]) == []
    assert times(run(one(Stalled(10)), [*first, *long, sample(60, 3, 1000)])) == [60_000]
    assert run(one(Stalled(10)), [*first, *long, sample(60, 3, 900)]) == []


def test_the_first_pass_over_memory_is_no_stall() -> None:
    assert run(one(Stalled(1)), [sample(at, 1, 1000 - at) for at in range(100)]) == []


def test_a_migration_that_sends_nothing_has_stalled() -> None:
    (fired,) = run(one(Stalled(5)), [sample(at, 1, max(500, 510 - at)) for at in range(30)])
    assert fired.at_ms == 15_000
    assert fired.reason == "nothing of the remaining 500 MiB was sent for 5.0 s"


def test_nothing_stalls_where_nothing_remains() -> None:
    assert run(one(Stalled(1)), [sample(at, at + 1, 0) for at in range(10)]) == []


def test_the_next_stall_is_counted_from_when_the_step_before_fired() -> None:
    steps = [*one(Stalled(4)), Step(Stalled(4), StepAction.ABORT)]
    assert times(run(steps, ends(*[1000] + [100] * 9))) == [6000, 10_000]


def test_a_later_step_waits_for_its_turn() -> None:
    steps = [*one(AfterSeconds(10)), *one(AfterIterations(1))]
    fired = run(steps, [sample(at, at + 1, 100) for at in range(20)])
    assert [(f.number, f.at_ms) for f in fired] == [(0, 10_000), (1, 10_000)]


@pytest.mark.parametrize("status", [s for s in QemuStatus if s is not QemuStatus.ACTIVE])
def test_nothing_fires_outside_precopy(status: QemuStatus) -> None:
    steps = [*one(AfterSeconds(1)), Step(AfterIterations(1), StepAction.ABORT)]
    assert run(steps, [sample(at, at + 1, 100, status) for at in range(20)]) == []


def test_after_a_restart_fired_steps_do_not_fire_again() -> None:
    steps = [*one(AfterSeconds(1)), *one(Stalled(4)), Step(AfterSeconds(50), StepAction.POSTCOPY)]
    later = [replace(each, at_ms=each.at_ms + 30_000) for each in ends(1000, 100, 100, 100)]
    fired = run(steps, later, remembered(steps, [(0, 1000)], []))
    assert [(f.number, f.at_ms) for f in fired] == [(1, 36_000)]


def test_a_stall_that_began_before_a_restart_counts_from_its_beginning() -> None:
    steps = one(Stalled(4))
    samples = ends(1000, 100, 100, 100, 100)
    (without,) = run(steps, samples)
    (resumed,) = run(steps, samples[3:], remembered(steps, [], samples[:3]))
    assert resumed == without


STEPS = st.lists(
    st.builds(
        Step,
        st.one_of(
            st.builds(AfterIterations, st.integers(1, 20)),
            st.builds(AfterSeconds, st.integers(1, 60)),
            st.builds(Stalled, st.integers(1, 20), st.integers(1, 50)),
        ),
        st.just(SLACK),
    ),
    max_size=5,
)


@st.composite
def migrations(draw: st.DrawFn) -> list[Sample]:
    at, iteration, samples = 0.0, 1, []
    for _ in range(draw(st.integers(0, 40))):
        at += draw(st.floats(0.05, 5))
        iteration += draw(st.integers(0, 2))
        samples.append(sample(at, iteration, draw(st.integers(0, 1000))))
    return samples


@given(STEPS, migrations())
def test_steps_fire_once_in_order_and_never_before_their_trigger(
    steps: list[Step], samples: list[Sample]
) -> None:
    fired = run(steps, samples)
    assert [each.number for each in fired] == list(range(len(fired)))
    assert times(fired) == sorted(times(fired))
    last_at = samples[0].at_ms if samples else 0
    for each in fired:
        assert each.reason
        assert each.step == steps[each.number]
        match each.step.trigger:
            case AfterIterations(iterations):
                assert each.iteration > iterations
            case AfterSeconds(seconds):
                assert each.at_ms >= seconds * 1000
            case Stalled(seconds, _):
                assert each.at_ms - last_at >= seconds * 1000
        last_at = each.at_ms
    if len(fired) < len(steps) and samples:
        # The one whose turn it is was not due at the end.
        trigger, end = steps[len(fired)].trigger, samples[-1]
        if isinstance(trigger, AfterSeconds):
            assert end.at_ms < trigger.seconds * 1000
        if isinstance(trigger, AfterIterations):
            assert end.iteration <= trigger.iterations


@given(STEPS, migrations(), st.integers(0, 40))
def test_a_successor_fires_what_the_process_before_would_have(
    steps: list[Step], samples: list[Sample], died_after: int
) -> None:
    before = run(steps, samples[:died_after])
    past = remembered(steps, [(one.number, one.at_ms) for one in before], samples[:died_after])
    assert before + run(steps, samples[died_after:], past) == run(steps, samples)


def with_postcopy(at_s: float, count: int, sent_mib: float, remaining_mib: float) -> Sample:
    """Of 128 MiB, as QEMU 11.1 counts where post-copy is on: every 100 ms."""
    each = sample(at_s, count, remaining_mib)
    return replace(each, total_bytes=128 * MIB, normal_pages=round(sent_mib * 256))


SEEN_OF_11_1 = [
    *(
        with_postcopy(n / 10, n + 1, 1.6 * n, max(128 - 1.6 * n, 119 + (5, 4, 2, 0)[n % 4]))
        for n in range(1, 60)
    ),
    with_postcopy(6.0, 60, 97, 123),
    with_postcopy(6.1, 61, 129, 91),
    with_postcopy(6.2, 63, 132, 92),
    with_postcopy(6.3, 64, 134, 91),
    with_postcopy(6.4, 65, 136, 94),
]
"""A guest that writes 96 MiB faster than they are sent (11.1.3, seen on an x86 machine)."""


def test_what_qemu_11_counts_within_a_pass_is_no_iteration() -> None:
    assert run(one(AfterIterations(1)), SEEN_OF_11_1[:-4]) == []
    (fired,) = run(one(AfterIterations(1)), SEEN_OF_11_1)
    assert fired.at_ms == 6100
    assert "1 iterations completed" in fired.reason
    assert run(one(AfterIterations(2)), SEEN_OF_11_1) == []
    # 129 MiB were sent, and 91 remained: the second pass ends at 220.
    second = [*SEEN_OF_11_1, with_postcopy(9, 91, 219, 92), with_postcopy(9.1, 92, 221, 92)]
    (fired,) = run(one(AfterIterations(2)), second)
    assert fired.at_ms == 9100


def test_the_first_pass_of_qemu_11_is_no_stall() -> None:
    """What remains stays, since the guest writes; its counts are no iterations' ends."""
    shrinking = [replace(s, remaining_bytes=s.remaining_bytes - n) for n, s in
                 enumerate(SEEN_OF_11_1[:-4])]  # fmt: skip
    reasons = [each.reason for each in run(one(Stalled(2)), shrinking)]
    assert not any("iterations' ends" in reason for reason in reasons)


def test_pages_that_qemu_leaves_out_do_not_keep_the_first_pass_from_ending() -> None:
    """The guest's free ones, which its balloon has named: 100 of 128 MiB."""
    passes = [with_postcopy(n, n, 24 + n, 10 / n) for n in range(1, 5)]
    (fired,) = run(one(AfterIterations(2)), passes)
    assert fired.iteration == 3


def test_passes_that_end_between_two_samples_all_count() -> None:
    """Before QEMU 11, and without post-copy, its count is that of passes."""
    (fired,) = run(
        one(AfterIterations(4)), [with_postcopy(1, 1, 60, 68), with_postcopy(2, 5, 150, 3)]
    )
    assert "4 iterations completed" in fired.reason


def test_after_a_restart_the_first_pass_of_qemu_11_is_told_by_its_pages() -> None:
    seen, steps = [*SEEN_OF_11_1], one(AfterIterations(1))
    past = remembered(steps, [], seen[:30])
    assert run(steps, seen[30:-4], past) == []
    (fired,) = run(steps, seen[30:], past)
    assert fired.at_ms == 6100
