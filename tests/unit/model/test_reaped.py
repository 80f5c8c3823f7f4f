"""The reaper's settings, and how they are judged by what the reaper did."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.examples.rounds import REPORT
from vmtune.engine.reaper.settings import ReaperSettings, wanted_reaper
from vmtune.model.migration.controller_record import ReaperEnd, ReaperReport
from vmtune.model.plan.outcome import Outcome, Status
from vmtune.model.plan.readback import when_reaped
from vmtune.model.tunables.rows.reaper import ReaperPolicy

WAITS = Outcome("reaper_policy", Status.PENDING_MIGRATION, "predict")
THROUGHOUT = replace(REPORT, interruptions=0)


def test_settings_come_from_the_profile_and_the_rest_from_the_table() -> None:
    assert wanted_reaper({}) is None
    assert wanted_reaper({"reaper_policy": "off", "reaper_min_interval_ms": 60}) is None
    assert wanted_reaper({"reaper_policy": "predict"}) == ReaperSettings()
    values: dict[str, int | str] = {
        "multifd_channels": 4,
        "reaper_policy": "levels",
        "reaper_min_interval_ms": 60,
        "reaper_max_interval_ms": 700,
    }
    assert wanted_reaper(values) == ReaperSettings(ReaperPolicy.LEVELS, 60, 700)


def test_it_took_effect_where_it_ran_from_before_the_migration_to_its_end() -> None:
    assert when_reaped(WAITS, THROUGHOUT) == Outcome(
        "reaper_policy", Status.EFFECTIVE, "predict", "predict"
    )


@pytest.mark.parametrize(
    ("report", "status", "reason"),
    [
        (None, Status.REJECTED, "no reaper ran"),
        (REPORT, Status.UNKNOWN, "could not go on for a while"),
        (replace(THROUGHOUT, rounds_before=0), Status.UNKNOWN, "after the migration's start"),
        (replace(REPORT, end=ReaperEnd.INTERRUPTED), Status.UNKNOWN, "vmtune ended before"),
        (replace(REPORT, end=ReaperEnd.RUNNING), Status.UNKNOWN, "vmtune ended before"),
        (
            ReaperReport("predict", 0, ReaperEnd.NOT_STARTED, reason="no dirty ring"),
            Status.REJECTED,
            "could not begin: no dirty ring",
        ),
        (
            replace(REPORT, end=ReaperEnd.FAILED, reason="QEMU said no"),
            Status.REJECTED,
            "after 400 rounds: QEMU said no",
        ),
    ],
)
def test_otherwise_it_says_why_not(
    report: ReaperReport | None, status: Status, reason: str
) -> None:
    outcome = when_reaped(WAITS, report)
    assert (outcome.status, outcome.wanted, outcome.seen) == (status, "predict", None)
    assert reason in outcome.reason


def test_what_was_rejected_beforehand_stays_so_and_off_is_off() -> None:
    rejected = Outcome("reaper_policy", Status.REJECTED, "predict", None, "TCG")
    assert when_reaped(rejected, None) == rejected
    off = Outcome("reaper_policy", Status.PENDING_MIGRATION, "off")
    assert when_reaped(off, None).status is Status.EFFECTIVE
