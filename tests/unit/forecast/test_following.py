"""Migrations that are simulated in steps of 50 ms, and followed by their samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.examples.samples import make_samples
from vmtune.forecast.bar import time_share
from vmtune.forecast.course import Conditions, follow
from vmtune.forecast.following import Followed, Pace, measured, observe, standing
from vmtune.forecast.outlook import Judged, Outlook, judge
from vmtune.model.host.dirty_rates import DirtyPoint
from vmtune.model.migration.record import QemuStatus, Sample

PAGE = 4096
MB = 1_000_000
STEP_MS = 50
TOTAL_PAGES = 200_000
UNMEASURED = Conditions(throughput_bytes_per_s=1.0, downtime_limit_ms=300)
_LONGEST_MS = 60_000


def migration(
    dirty_mb_per_s: float, send_mb_per_s: float, working_set_mb: float
) -> Iterator[Sample]:
    """The samples of a guest that dirties at a steady rate; until it is switched over."""
    send = send_mb_per_s * MB / PAGE * STEP_MS / 1000
    dirty = dirty_mb_per_s * MB / PAGE * STEP_MS / 1000
    threshold = send_mb_per_s * MB * 0.3 / PAGE
    remaining, sent, dirtied, count = float(TOTAL_PAGES), 0.0, 0.0, 1
    for at_ms in range(STEP_MS, _LONGEST_MS, STEP_MS):
        done = min(send, remaining)
        sent, remaining = sent + done, remaining - done
        dirtied = min(dirtied + dirty, working_set_mb * MB / PAGE)
        if remaining < threshold:
            remaining, dirtied, count = remaining + dirtied, 0.0, count + 1
            if remaining < threshold:
                return
        yield replace(
            make_samples(1)[0],
            at_ms=at_ms,
            status=QemuStatus.ACTIVE,
            iteration=count,
            transferred_bytes=round(sent) * PAGE,
            remaining_bytes=round(remaining) * PAGE,
            total_bytes=TOTAL_PAGES * PAGE,
            normal_pages=round(sent),
            zero_pages=0,
            page_size_bytes=PAGE,
            throttle_percent=0,
        )


def followed(samples: list[Sample]) -> list[tuple[Sample, Outlook]]:
    seen, judged, told = Followed(), Judged(), []
    for each in samples:
        seen = observe(seen, each)
        judged = judge(judged, seen, UNMEASURED)
        told.append((each, judged.outlook))
    return told


@given(st.floats(1, 75), st.floats(60, 300), st.floats(20, 2000))
@example(73.0, 63.0, 28.0)  # passes of some steps: one more or less is much of what is left
@settings(max_examples=40, deadline=None)
def test_the_time_left_is_near_the_truth_from_the_second_synchronisation_on(
    dirty_percent: float, send: float, working_set: float
) -> None:
    samples = list(migration(send * dirty_percent / 100, send, working_set))
    ended_ms = samples[-1].at_ms + STEP_MS + 300
    for each, outlook in followed(samples):
        if each.iteration < 3:
            continue
        assert outlook.ends is not False
        if outlook.ends is None:  # all passes took longer than the guest needs for all its memory
            assert working_set * 1000 < send * dirty_percent / 100 * each.at_ms
            continue
        assert outlook.left_ms == pytest.approx(ended_ms - each.at_ms, rel=0.35, abs=1000)


def test_before_the_first_synchronisation_only_the_pass_is_told() -> None:
    first = [(s, o) for s, o in followed(list(migration(30, 100, 500))) if s.iteration == 1]
    late = [outlook for each, outlook in first if each.at_ms > 1000]
    assert late
    assert {outlook.ends for outlook in late} == {None}
    sample_then, outlook_then = first[-1]
    assert outlook_then.pass_left_ms == pytest.approx(0, abs=200)
    assert sample_then.at_ms > 5000


def test_that_it_will_not_end_is_told_after_the_second_synchronisation() -> None:
    told = followed(list(migration(130, 100, 1000)))
    at = next(each for each, outlook in told if outlook.ends is False)
    assert at.iteration == 3
    assert all(o.ends is False for each, o in told if each.iteration > 3)
    needs = told[-1][1].needs
    assert needs is not None
    assert needs.downtime_limit_ms is not None
    assert needs.downtime_limit_ms > 300
    assert needs.throughput_bytes_per_s is not None
    assert 130 * MB < needs.throughput_bytes_per_s < 200 * MB
    assert needs.throttle_percent is not None


def at_a_synchronisation(dirtied_mb: list[float], send_mb_per_s: float) -> Followed:
    """Passes of 10 s, each with what the guest dirtied during it."""
    left = round(dirtied_mb[-1] * MB)
    sent = 1000 * MB
    last = replace(
        make_samples(1)[0],
        at_ms=100_000,
        status=QemuStatus.ACTIVE,
        iteration=len(dirtied_mb) + 1,
        transferred_bytes=sent,
        remaining_bytes=left,
        normal_pages=sent // PAGE,
        zero_pages=0,
        page_size_bytes=PAGE,
        throttle_percent=0,
    )
    before = round(sent - 3 * send_mb_per_s * MB)
    return Followed(
        points=tuple(DirtyPoint(10_000, each * MB) for each in dirtied_mb),
        synced=Pace(100_000, sent, sent, sent),
        paces=(Pace(97_000, before, before, before),),
        last=last,
        syncs=len(dirtied_mb),
    )


@pytest.mark.parametrize(
    ("dirtied_mb", "ends"),
    [([48] * 6, False), ([50, 49, 47, 46, 44, 43], True), ([48, 48, 48], True)],
)
def test_as_much_left_at_each_synchronisation_will_not_end(
    dirtied_mb: list[float], ends: bool
) -> None:
    # At 5.2 MB/s the path carries what a steady guest would dirty: 4.8 MB/s.
    seen = at_a_synchronisation(dirtied_mb, 5.2)
    judged = judge(Judged(), seen, UNMEASURED)
    again = judge(judged, replace(seen, syncs=seen.syncs + 1), UNMEASURED)
    assert (again.outlook.ends is False) is not ends
    if not ends:
        assert again.outlook.needs is not None
        assert again.outlook.needs.downtime_limit_ms is not None
        assert 9_000 < again.outlook.needs.downtime_limit_ms < 16_000


def test_what_was_measured_before_tells_of_times_that_are_shorter_than_a_pass() -> None:
    """All that the guest works on is dirty again after 100 ms: no pass gets shorter."""
    seen = at_a_synchronisation([48] * 3, 5.2)
    known = DirtyPoint(100, 48 * MB), DirtyPoint(8000, 48 * MB)
    judged = judge(Judged(), seen, UNMEASURED, known)
    again = judge(judged, replace(seen, syncs=seen.syncs + 1), UNMEASURED, known)
    assert again.outlook.ends is False
    assert judge(Judged(), seen, UNMEASURED).outlook.ends is True


@pytest.mark.parametrize(
    ("limit_mb_per_s", "expected"), [(5.5, (5.5, True)), (10, (5.2, False)), (None, (5.2, False))]
)
def test_a_limit_that_is_nearly_reached_holds_the_throughput(
    limit_mb_per_s: float | None, expected: tuple[float, bool]
) -> None:
    limit = None if limit_mb_per_s is None else limit_mb_per_s * MB
    conditions = replace(UNMEASURED, limit_bytes_per_s=limit)
    found = measured(at_a_synchronisation([48], 5.2), conditions)
    assert found is not None
    assert (found.throughput_bytes_per_s / MB, found.limited) == pytest.approx(expected)
    assert (found.burst_bytes_per_s is not None) is found.limited


def test_of_a_limited_migration_the_present_burst_is_taken_to_be_sent() -> None:
    """9 MB remain of 10 MB that one burst sends: it is the next one that does."""
    conditions = replace(UNMEASURED, limit_bytes_per_s=100 * MB)
    seen = at_a_synchronisation([9], 100)
    stands, limited = standing(seen), measured(seen, conditions)
    assert stands is not None
    assert limited is not None
    assert limited.limited
    course = follow(*stands, replace(limited, downtime_limit_ms=1))
    assert 25 < course.left_ms - course.silence_ms < 75


def test_in_post_copy_what_remains_is_what_is_left() -> None:
    samples = list(migration(130, 100, 1000))
    seen = Followed()
    for each in samples:
        seen = observe(seen, each)
    seen = observe(seen, replace(samples[-1], status=QemuStatus.POSTCOPY_ACTIVE))
    outlook = judge(Judged(), seen, UNMEASURED).outlook
    assert outlook.ends
    assert outlook.left_ms == pytest.approx(
        samples[-1].remaining_bytes / (100 * MB) * 1000, rel=0.05
    )


@given(st.floats(1, 200), st.floats(60, 300), st.floats(20, 2000))
@settings(max_examples=40, deadline=None)
def test_the_bar_never_goes_back_and_is_whole_only_at_the_end(
    dirty: float, send: float, working_set: float
) -> None:
    share = 0.0
    for each, outlook in followed(list(migration(dirty, send, working_set))):
        after = time_share(each.at_ms, outlook, share)
        assert share <= after < 1
        share = after


def test_the_bar_is_about_time() -> None:
    samples = list(migration(50, 100, 5000))
    ended_ms = samples[-1].at_ms
    share = 0.0
    for each, outlook in followed(samples):
        share = time_share(each.at_ms, outlook, share)
        if each.iteration > 2:
            assert share == pytest.approx(each.at_ms / ended_ms, abs=0.12)
