"""Judging what was read back, and what undoing takes."""

import pytest

from vmtune.model.host.facts import Reading
from vmtune.model.plan.changes import Change, spread, undo
from vmtune.model.plan.outcome import Status, judge


def test_what_was_asked_for_is_effective() -> None:
    assert judge("downtime_limit_ms", 300, Reading(300)).status is Status.EFFECTIVE


def test_another_value_is_overwritten_and_says_by_whom() -> None:
    outcome = judge("multifd", True, Reading(False), "libvirt, at every migration")
    assert outcome.status is Status.OVERWRITTEN
    assert outcome.seen is False
    assert "libvirt" in outcome.reason


@pytest.mark.parametrize(("wanted", "seen"), [(True, 1), (1, True), (0, False)])
def test_a_number_is_no_truth_value(wanted: int, seen: int) -> None:
    assert judge("multifd_channels", wanted, Reading(seen)).status is Status.OVERWRITTEN


def test_what_cannot_be_read_is_unknown_with_the_reason() -> None:
    outcome = judge("tls", True, Reading(None, why_unknown="the monitor is busy"))
    assert outcome.status is Status.UNKNOWN
    assert outcome.reason == "the monitor is busy"


def test_one_part_that_differs_is_enough() -> None:
    reading = Reading.of_parts({"iothread1": 8, "iothread2": 9}, "no iothreads")
    outcome = judge("iothread_thread_pool_max", 8, reading)
    assert outcome.status is Status.OVERWRITTEN
    assert outcome.seen == 9


def test_parts_that_agree_are_one_value() -> None:
    assert Reading.of_parts({"a": 8, "b": 8}, "none").value == 8
    assert Reading.of_parts({}, "no iothreads") == Reading(None, {}, "no iothreads")


READINGS = {
    "iothread_poll_grow": Reading(None, {"iothread1": 1, "iothread2": 2}),
    "downtime_limit_ms": Reading(300),
    "tls_hostname": Reading(None, why_unknown="not set"),
}


def test_a_change_is_spread_over_its_parts() -> None:
    changes = [Change("iothread_poll_grow", 5), Change("downtime_limit_ms", 1)]
    assert spread(changes, READINGS) == [
        Change("iothread_poll_grow", 5, "iothread1"),
        Change("iothread_poll_grow", 5, "iothread2"),
        Change("downtime_limit_ms", 1),
    ]


def test_undoing_gives_each_part_its_own_value_back() -> None:
    changes = [
        Change("iothread_poll_grow", 5),
        Change("downtime_limit_ms", 1),
        Change("tls_hostname", "b"),
    ]
    assert undo(changes, READINGS) == [
        Change("iothread_poll_grow", 1, "iothread1"),
        Change("iothread_poll_grow", 2, "iothread2"),
        Change("downtime_limit_ms", 300),
    ]


@pytest.mark.parametrize("reading", [Reading(2), Reading(0), Reading(None, {"io1": 0, "io2": 2})])
def test_what_qemu_chose_for_itself_is_effective(reading: Reading) -> None:
    """Since 11, 0 of what an iothread's polling grows and shrinks by reads back 2."""
    assert judge("iothread_poll_grow", 0, reading).status is Status.EFFECTIVE


@pytest.mark.parametrize(("wanted", "seen"), [(0, 3), (1, 2), (2, 0)])
def test_what_another_chose_is_not(wanted: int, seen: int) -> None:
    assert judge("iothread_poll_shrink", wanted, Reading(seen)).status is Status.OVERWRITTEN
