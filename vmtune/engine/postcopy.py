"""What a record says of a post-copy that was interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from vmtune.errors import Problem
from vmtune.model.migration.record import Migration

PAUSED = "postcopy_paused"
RESUMED = "postcopy_resumed"
NOT_RECOVERED = "postcopy_not_recovered"
_RUNS_ON = ": the guest runs on"


def interrupted(record: Migration, why: str) -> Problem:
    """The problem of a migration that is paused in post-copy: which host holds what.

    :param why: in QEMU's words; empty where it gives no reason.
    """
    there = record.destination or "the destination"
    said = f" ({why})" if why else ""
    return Problem(
        "vm",
        PAUSED,
        f"post-copy is paused{said}{_RUNS_ON} {there} and stops where it needs memory "
        f"that is still on {record.source}; do not shut down either host, nor end the VM on one",
        f"restore the path between the hosts, then: vmtune migration recover {record.id}",
    )


def resumed(problems: Sequence[Problem], at: datetime) -> tuple[Problem, ...]:
    """*problems*, with what was paused told as past: it needs nothing any more."""
    return tuple(
        replace(
            problem,
            code=RESUMED,
            message=f"{_in_past(problem.message)}, and went on at {at:%Y-%m-%d %H:%M:%S} UTC",
            remedy="",
        )
        if problem.code == PAUSED
        else problem
        for problem in problems
        if problem.code != NOT_RECOVERED
    )


def _in_past(message: str) -> str:
    return message.partition(_RUNS_ON)[0].replace("is paused", "was paused", 1)
