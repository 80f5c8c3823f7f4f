"""What a record says of a post-copy that was interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from vmtune.errors import Problem
from vmtune.model.migration.postcopy import BY_HAND, NOT_OFFERED, way_out
from vmtune.model.migration.record import Migration

PAUSED = "postcopy_paused"
RESUMED = "postcopy_resumed"
NOT_RECOVERED = "postcopy_not_recovered"
STALLED = "postcopy_stalled"
_OVER = (NOT_RECOVERED, NOT_OFFERED, STALLED)
"""What needs nothing any more once it goes on."""
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
        way_out(record),
    )


def not_offered(problems: Sequence[Problem], why: str) -> tuple[Problem, ...]:
    """*problems*, where no attempt of vmtune's would help: what else can be done, and why.

    :param why: of :func:`~vmtune.model.migration.postcopy.why_not_offered`.
    """
    kept = [
        replace(problem, remedy=BY_HAND) if problem.code == PAUSED else problem
        for problem in problems
        if problem.code != NOT_OFFERED
    ]
    message = f"vmtune cannot recover this migration: {why}"
    return (*kept, Problem("vm", NOT_OFFERED, message, BY_HAND))


def stalled(record: Migration, seconds: float) -> Problem:
    """The problem of a post-copy in which nothing is sent: QEMU notices a connection that is cut
    only when TCP gives up.

    :param seconds: for how long by now.
    """
    there = record.destination or "the destination"
    return Problem(
        "vm",
        STALLED,
        f"nothing was sent for {seconds:.0f} s in post-copy: the guest on {there} stops where it "
        f"needs memory that is still on {record.source}; do not shut down either host, nor end "
        "the VM on one",
        "restore the path between the hosts; where another one leads there: "
        f"vmtune migration recover {record.id} --over ADDRESS",
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
        if problem.code not in _OVER
    )


def _in_past(message: str) -> str:
    return message.partition(_RUNS_ON)[0].replace("is paused", "was paused", 1)
