"""What a guest felt of its migration, from the samples."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples.migrations import make_migration
from tests.support.simulated.control import sample
from vmtune.intent.felt import Felt, with_kept
from vmtune.model.migration.controller_record import StepEffect, StepRecord
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.intent import Goal, Intent, Means
from vmtune.model.migration.record import Migration, QemuStatus, Sample, Totals
from vmtune.model.migration.stated_intent import Measure, StatedIntent, relaxing

INTENT = Intent(500, 60, 20, 1000, may=(Means.THROTTLE,))
TOTALS = Totals(10_000, 300, 5, 9000, 4)
SENT_PER_MS = 1


def record(*steps: StepRecord) -> Migration:
    return make_migration(intent=StatedIntent(INTENT, {}, (), ""), step_records=steps)


def seen(at_ms: int, throttle: int = 0, status: QemuStatus = QemuStatus.ACTIVE) -> Sample:
    made = sample(at_ms=at_ms)
    sent = at_ms * SENT_PER_MS
    return replace(made, status=status, throttle_percent=throttle, transferred_bytes=sent)


def until(end_ms: int, throttle: int = 0) -> list[Sample]:
    return [seen(at_ms, throttle) for at_ms in range(0, end_ms, 100)]


def test_the_hardest_throttle_bounds_the_slowdown() -> None:
    stated = with_kept(record(), TOTALS, Felt([*until(5000, 20), *until(9000)[50:]]))
    assert stated is not None
    found = {each.goal: each for each in stated.kept}
    assert (found[Goal.SLOWDOWN].measured, found[Goal.SLOWDOWN].kept) == (20, True)
    sent = found[Goal.BANDWIDTH].measured
    assert sent == pytest.approx(1000 * 1000 / 1100)
    assert found[Goal.BANDWIDTH].kept
    assert found[Goal.SILENCE].by is Measure.QEMU


def test_what_was_not_seen_to_the_end_is_not_known() -> None:
    """As where the connection to the source was lost: the record says until when it was steered."""
    for felt, until_ms in ((Felt(), 0), (Felt(until(5000)), 4900), (Felt(until(9800)), None)):
        stated = with_kept(record(), TOTALS, felt)
        assert stated is not None
        assert stated.steered_until_ms == until_ms
    for felt in (Felt(), Felt(until(5000))):
        happened = felt.of(record(), TOTALS)
        assert (happened.withheld_percent, happened.most_bytes_per_s) == (None, None)


def test_what_a_short_one_sent_is_known_by_all_that_was_seen_of_it() -> None:
    totals = replace(TOTALS, total_time_ms=900)
    sent = Felt(until(900)).of(record(), totals).most_bytes_per_s
    assert sent == pytest.approx(1000 * 800 / 900)
    assert Felt(until(200)).of(record(), totals).most_bytes_per_s is None
    for both in (Felt() | Felt(until(900)), Felt(until(900)) | Felt()):
        assert both.of(record(), totals).most_bytes_per_s == sent


@pytest.mark.parametrize(("limit", "kept"), [(1000, True), (1300, False)])
def test_what_qemu_sends_at_the_beginning_of_a_slot_breaks_no_bandwidth(
    limit: int, kept: bool
) -> None:
    """A window of a second begins just before a burst and ends just after another: 11 of them."""
    bursts = [
        replace(seen(at_ms), transferred_bytes=(at_ms // 100 + 1) * limit // 10 if at_ms else 0)
        for at_ms in range(0, 9000, 50)
    ]
    stated = with_kept(record(), TOTALS, Felt(bursts))
    assert stated is not None
    sent = next(each for each in stated.kept if each.goal is Goal.BANDWIDTH)
    assert sent.kept is kept
    assert stated.broken is not kept


def test_in_postcopy_the_guest_waits_for_pages_for_how_long_is_not_known() -> None:
    late = seen(9500, status=QemuStatus.POSTCOPY_ACTIVE)
    assert Felt([*until(9000), late]).of(record(), TOTALS).withheld_percent is None


def test_how_long_a_guest_stood_still_that_was_cut_off_from_its_pages_is_not_known() -> None:
    """QEMU's downtime is that of the switch: for the rest it says nothing of silence."""
    cut_off = seen(9500, status=QemuStatus.POSTCOPY_PAUSED)
    for felt in (Felt([*until(9000), cut_off]), Felt([cut_off]) | Felt(until(9000))):
        stated = with_kept(record(), TOTALS, felt)
        assert stated is not None
        silence = stated.kept[0]
        assert (silence.goal, silence.kept, silence.by) == (Goal.SILENCE, None, Measure.UNKNOWN)


def test_the_copy_of_disks_counts_for_the_deadline() -> None:
    """QEMU's time is that of the memory: 10 s of 60, after disks that took 55."""
    disk = CopiedDisk("vda", "/x", ready_ms=55_000)
    copied = replace(record(), disks=(disk,))
    later = [replace(each, at_ms=each.at_ms + 55_000) for each in until(9900)]
    stated = with_kept(copied, TOTALS, Felt(later))
    assert stated is not None
    deadline = next(each for each in stated.kept if each.goal is Goal.DEADLINE)
    assert (deadline.measured, deadline.kept) == (65.0, False)
    assert stated.steered_until_ms is None
    two = (replace(disk, copied_bytes=50_000), replace(disk, copied_bytes=60_000))
    happened = Felt(later).of(replace(copied, disks=two), TOTALS)
    assert happened.most_bytes_per_s == 2000, "by both disks together, and 1000 of the memory"
    half = with_kept(copied, TOTALS, Felt(later[:10]))
    assert half is not None
    assert half.steered_until_ms == 55_900


GIVEN_UP = StepRecord(None, 4000, 2, relaxing(Goal.SILENCE), "late", StepEffect.DONE)


@pytest.mark.parametrize(
    ("downtime_ms", "shadow", "steps", "broken"),
    [
        (500, False, (), False),
        (501, False, (), True),
        (501, True, (), False),
        (501, False, (GIVEN_UP,), False),
    ],
)
def test_an_intent_is_broken_by_a_goal_that_nobody_gave_up(
    downtime_ms: int, shadow: bool, steps: tuple[StepRecord, ...], broken: bool
) -> None:
    stated = replace(record().intent, shadow=shadow)
    totals = replace(TOTALS, downtime_ms=downtime_ms)
    found = with_kept(replace(record(*steps), intent=stated), totals, Felt(until(9000)))
    assert found is not None
    assert found.kept[0].kept is (downtime_ms == 500)
    assert found.broken is broken


def test_a_guest_that_was_paused_stood_still_from_then_on() -> None:
    paused = StepRecord(None, 4000, 2, "pause the guest", "late", StepEffect.DONE)
    assert Felt(until(9900)).of(record(paused), TOTALS).silence_ms == 6000


@given(st.lists(st.integers(0, 99), min_size=1, max_size=60), st.integers(0, 60))
def test_two_processes_see_what_one_would_have_seen(throttles: list[int], split: int) -> None:
    samples = [seen(number * 200, throttle) for number, throttle in enumerate(throttles)]
    totals = replace(TOTALS, total_time_ms=len(samples) * 200)
    whole = Felt(samples).of(record(), totals)
    parts = (Felt(samples[:split]) | Felt(samples[split:])).of(record(), totals)
    assert parts.withheld_percent == whole.withheld_percent == max(throttles)
